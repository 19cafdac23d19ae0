"""What happens around the epochs of a training, each in a file of its own."""

from lignn.training.hooks.averaging import Averaging
from lignn.training.hooks.hook import Hook
from lignn.training.hooks.input_dropout import InputDropout
from lignn.training.hooks.progress import Progress, Watch
from lignn.training.hooks.stopping import Stopping
from lignn.training.hooks.teaching import Teaching

__all__ = ["Averaging", "Hook", "InputDropout", "Progress", "Stopping", "Teaching", "Watch"]
