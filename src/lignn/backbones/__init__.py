"""Networks that take labels beside features, one per file, and an adapter for any other PyTorch module."""

from lignn.backbones.adapter import Adapter
from lignn.backbones.backbone import Backbone
from lignn.backbones.gat import GAT
from lignn.backbones.gcn import GCN
from lignn.backbones.gcnii import GCNII
from lignn.backbones.gin import GIN
from lignn.backbones.jknet import JKNet
from lignn.backbones.layers import Dropout, frozen_dropout
from lignn.backbones.mlp import MLP
from lignn.backbones.norms import solving
from lignn.backbones.registry import names, resolve
from lignn.backbones.rgcn import RGCN
from lignn.backbones.sage import SAGE
from lignn.backbones.sgc import SGC

__all__ = [
    "GAT",
    "GCN",
    "GCNII",
    "GIN",
    "MLP",
    "RGCN",
    "SAGE",
    "SGC",
    "Adapter",
    "Backbone",
    "Dropout",
    "JKNet",
    "frozen_dropout",
    "names",
    "resolve",
    "solving",
]
