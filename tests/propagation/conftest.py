import pytest
import torch


@pytest.fixture
def threads():
    """Return a function that sets PyTorch's number of threads, and restore the number after the test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)
