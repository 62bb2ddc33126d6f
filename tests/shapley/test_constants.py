import torch

from protopfaith.shapley.constants import constant


def test_the_same_numbers_are_made_once() -> None:
    first = constant((1.0, 0.25), torch.float32, torch.device("cpu"))
    assert first.tolist() == [1.0, 0.25]
    assert constant((1.0, 0.25), torch.float32, torch.device("cpu")) is first
    assert constant((1.0, 0.25), torch.float64, torch.device("cpu")).dtype == torch.float64
