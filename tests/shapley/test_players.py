import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import Players


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 7), st.integers(1, 7))
def test_windows_cover_any_image(height, width, down, right):
    players = Players.windows((height, width), (down, right))
    assert len(players) == -(-height // down) * -(-width // right)
    for row in range(height):
        for column in range(width):
            expected = row // down * -(-width // right) + column // right
            assert players.labels[row, column] == expected
    assert int(players.sizes.sum()) == height * width


def test_masks_and_maps_follow_the_labels():
    labels = torch.tensor([[0, 1, 1], [2, 0, 2]])
    players = Players.from_labels(labels)
    coalitions = torch.tensor([[True, False, True], [False, False, False]])
    masks = players.masks(coalitions)
    assert masks.shape == (2, 1, 2, 3)
    for m, coalition in enumerate(coalitions):
        for pixel in torch.cartesian_prod(torch.arange(2), torch.arange(3)):
            assert masks[m, 0, pixel[0], pixel[1]] == coalition[labels[pixel[0], pixel[1]]]
    values = torch.randn(4, 3)
    assert torch.equal(players.to_map(values)[:, 0, 1], values[:, 1])


def test_channels_apart_are_players_of_their_own():
    players = Players.windows((4, 6), 2, channels=3)
    assert len(players) == 18
    assert players.labels.shape == (3, 4, 6)
    assert players.to_map(torch.randn(2, 18)).shape == (2, 3, 4, 6)
    assert "apart" in players.description
    assert players.centers[:, 0].tolist() == sorted([0.0, 1.0, 2.0] * 6)


def test_centers_are_means_of_pixel_coordinates():
    players = Players.windows((5, 4), 2)
    assert players.centers[0].tolist() == [0, 0.5, 0.5]
    assert players.centers[5].tolist() == [0, 4, 2.5]  # the last row is one pixel high


def test_superpixels_follow_the_picture():
    image = torch.zeros(3, 32, 32)
    image[:, :, 16:] = 1
    players = Players.superpixels(image, 8)
    assert 2 <= len(players) <= 16
    left, right = players.labels[:, :15].unique(), players.labels[:, 17:].unique()
    assert not set(left.tolist()) & set(right.tolist())


def test_superpixels_of_one_channel():
    assert len(Players.superpixels(torch.rand(1, 24, 24), 4)) >= 1


@pytest.mark.parametrize(
    ("labels", "complaint"),
    [
        (torch.tensor([[0, -1], [1, 0]]), "belong to no player"),
        (torch.tensor([[0, 2], [2, 0]]), "Player 1 is empty"),
        (torch.tensor([0, 1]), "label image"),
        (torch.tensor([[0.0, 1.0]]), "int64"),
    ],
)
def test_bad_labels_are_refused_in_one_sentence(labels, complaint):
    with pytest.raises(ProtoPFaithError, match=complaint):
        Players.from_labels(labels)


def test_windows_of_no_size_are_refused():
    with pytest.raises(ProtoPFaithError, match="no players"):
        Players.windows((4, 4), 0)


def test_a_value_per_player_is_needed():
    with pytest.raises(ProtoPFaithError, match="one value per player"):
        Players.windows((4, 4), 2).to_map(torch.zeros(3))


def test_superpixels_of_noise_are_many_all_the_same():
    noise = torch.rand(3, 40, 40, generator=torch.Generator().manual_seed(0))
    for count in (9, 20, 60):
        assert count / 2 <= len(Players.superpixels(noise, count)) <= 2 * count
