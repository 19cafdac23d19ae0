"""The family of label-inputted methods, composed of steps, maskings, solvers and gradients."""

from lignn.methods.correct_and_smooth import CorrectAndSmooth
from lignn.methods.eignn import EIGNN
from lignn.methods.ensemble import Ensemble
from lignn.methods.ignn import IGNN
from lignn.methods.label_inputted import LabelInputted
from lignn.methods.masking import LoopingState, Masking, ShareOfTraining
from lignn.methods.method import Carry, Epoch, Method
from lignn.methods.network import Network
from lignn.methods.presets import LIGNN, LabelInput, LabelReuse, LaE
from lignn.methods.problem import BoundMethod, Prediction, Problem
from lignn.methods.propagated import LPA, ResLPA, ThreeFerence
from lignn.methods.registry import NAMES, build
from lignn.methods.steps import BackboneStep, PropagationStep, Step
from lignn.methods.tabular import Boosted, Logistic

__all__ = [
    "EIGNN",
    "IGNN",
    "LIGNN",
    "LPA",
    "NAMES",
    "BackboneStep",
    "Boosted",
    "BoundMethod",
    "Carry",
    "CorrectAndSmooth",
    "Ensemble",
    "Epoch",
    "LaE",
    "LabelInput",
    "LabelInputted",
    "LabelReuse",
    "Logistic",
    "LoopingState",
    "Masking",
    "Method",
    "Network",
    "Prediction",
    "Problem",
    "PropagationStep",
    "ResLPA",
    "ShareOfTraining",
    "Step",
    "ThreeFerence",
    "build",
]
