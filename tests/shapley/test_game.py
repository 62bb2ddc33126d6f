import numpy as np
import pytest
import torch
from torch import nn

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import Game, Players

from .games import mask_game, network, network_game

IMAGE = torch.randn(3, 12, 12, generator=torch.Generator().manual_seed(0))
PLAYERS = Players.windows((12, 12), 4)


def flat_sum(images):
    return images.flatten(1).sum(1)


def test_values_are_those_of_masked_images():
    model, baseline = network(), torch.randn(3, 12, 12)
    game = Game(model, IMAGE, PLAYERS, baseline)
    coalitions = torch.rand(7, 9) < 0.5
    expected = []
    for coalition in coalitions:
        image = baseline.clone()
        for player in coalition.nonzero().flatten():
            image[:, PLAYERS.labels == player] = IMAGE[:, PLAYERS.labels == player]
        expected.append(model(image[None])[0])
    assert torch.allclose(game(coalitions), torch.stack(expected), atol=1e-5)
    assert torch.allclose(game.grand, model(IMAGE[None])[0], atol=1e-5)
    assert torch.allclose(game.empty, model(baseline[None])[0], atol=1e-5)
    assert not game(coalitions).requires_grad


def test_channels_apart():
    image = torch.arange(12.0).reshape(3, 2, 2)
    game = Game(flat_sum, image, Players.windows((2, 2), 2, channels=3))
    assert game(torch.eye(3).bool())[:, 0].tolist() == image.sum((1, 2)).tolist()


def test_evaluations_are_counted():
    game = network_game(check=False)
    assert game.evaluations == 2
    game(torch.ones(5, 9, dtype=torch.bool))
    assert game.evaluations == 7


@pytest.mark.parametrize("batch_size", [1, 3, None])
def test_batches_do_not_matter(batch_size):
    coalitions = torch.rand(10, 9, generator=torch.Generator().manual_seed(1)) < 0.5
    assert torch.allclose(
        network_game(batch_size=batch_size)(coalitions), network_game()(coalitions), atol=1e-5
    )


def test_no_coalitions_give_no_values():
    assert network_game()(torch.zeros(0, 9, dtype=torch.bool)).shape == (0, 3)


def test_a_smaller_memory_bound_makes_smaller_batches():
    sizes = [network_game(memory=memory).batch_size for memory in (100_000, 1_000_000)]
    assert 1 <= sizes[0] < sizes[1]


@pytest.mark.parametrize(
    "error",
    [
        torch.cuda.OutOfMemoryError("CUDA out of memory."),
        MemoryError(),
        RuntimeError("can't allocate memory"),
    ],
)
def test_running_out_of_memory_halves_the_batch_and_goes_on(error):
    seen = []

    def hungry(images):
        seen.append(len(images))
        if len(images) > 3:
            raise error
        return flat_sum(images)

    game = Game(hungry, IMAGE, PLAYERS, batch_size=16)
    coalitions = torch.rand(32, 9) < 0.5
    expected = Game(flat_sum, IMAGE, PLAYERS)(coalitions)
    assert torch.allclose(game(coalitions), expected, atol=1e-4)
    assert game.batch_size <= 3
    assert max(seen) == 16
    assert game.evaluations == 2 + 5 + 32  # failed tries are not evaluations


def test_memory_that_does_not_hold_one_image_is_said():
    def hungry(images):
        if images[0].mean() != IMAGE.mean() and images[0].any():
            raise MemoryError
        return flat_sum(images)

    with pytest.raises(ProtoPFaithError, match="single image"):
        Game(hungry, IMAGE, PLAYERS, batch_size=4)(torch.eye(9).bool())


def test_other_errors_of_the_function_are_told_with_their_cause():
    def broken(images):
        if images[0].mean() != IMAGE.mean() and images[0].any():
            raise RuntimeError("shapes do not match")
        return flat_sum(images)

    with pytest.raises(ProtoPFaithError, match="RuntimeError: shapes do not match") as told:
        Game(broken, IMAGE, PLAYERS)(torch.eye(9).bool())
    assert isinstance(told.value.__cause__, RuntimeError)


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (lambda rows: rows.to("meta"), "without content"),
        (lambda rows: rows.to_sparse(), "sparse_coo"),
        (lambda rows: rows[:, None].expand(len(rows), 10**9), "1,000,000,000 numbers for an image"),
        (lambda rows: rows[:, None].expand(len(rows), 5 * 10**6), "5,000,000 numbers for an image"),
    ],
)
def test_answers_that_cannot_be_computed_with_are_refused(odd, words):
    with pytest.raises(ProtoPFaithError, match=words):
        Game(lambda images: odd(flat_sum(images)), IMAGE, PLAYERS)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 2e37])
@pytest.mark.parametrize("where", ["everywhere", "some"])
def test_values_that_are_not_finite_are_refused(bad, where):
    def function(masks):
        size = masks.sum(1)
        hit = torch.ones_like(size, dtype=torch.bool) if where == "everywhere" else size == 2
        return torch.where(hit, torch.tensor(bad), size.float())

    with pytest.raises(ProtoPFaithError, match="NaN, infinity or a number beyond"):
        mask_game(function, 4)(torch.tensor([[True, True, False, False]]))


def test_a_function_may_answer_in_the_same_memory_every_time():
    answer = torch.empty(3, 1)

    def function(images):
        answer[: len(images)] = flat_sum(images)[:, None]
        return answer[: len(images)]

    coalitions = torch.rand(10, len(PLAYERS)) < 0.5
    values = Game(function, IMAGE, PLAYERS, batch_size=3)(coalitions)
    assert torch.equal(values, Game(flat_sum, IMAGE, PLAYERS, batch_size=3)(coalitions))


@pytest.mark.parametrize("module", [nn.Dropout(0.1), nn.BatchNorm2d(3)])
def test_a_function_that_changes_between_calls_is_detected(module):
    torch.manual_seed(0)
    model = nn.Sequential(module, network()).train()
    with pytest.raises(ProtoPFaithError, match=r"model\.eval\(\)"):
        Game(model, IMAGE, PLAYERS)
    Game(model.eval(), IMAGE, PLAYERS)


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_a_function_that_is_zero_up_to_rounding_is_no_random_one(scale):
    """As a difference of two logits can be: what is left is rounding, and that changes with the batch."""
    calls = []

    def function(images):
        calls.append(len(images))
        noise = torch.randn(len(images), generator=torch.Generator().manual_seed(len(calls)))
        large = scale * images.flatten(1).sum(1)
        return torch.stack([large, 1e-6 * scale * noise], 1)

    game = Game(function, IMAGE, PLAYERS)
    assert len(calls) == 3
    assert game.grand.abs()[1] < 1e-5 * scale


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_small_functions_are_still_checked(scale):
    model = nn.Sequential(nn.Dropout(0.1), network()).train()
    torch.manual_seed(0)
    with pytest.raises(ProtoPFaithError, match=r"model\.eval\(\)"):
        Game(lambda images: scale * model(images), IMAGE, PLAYERS)


@pytest.mark.parametrize("batch_size", [1, 2])
def test_batch_statistics_are_found_whatever_the_batch_size(batch_size):
    model = nn.Sequential(nn.BatchNorm2d(3), network()).train()
    with pytest.raises(ProtoPFaithError, match=r"model\.eval\(\)"):
        Game(model, IMAGE, PLAYERS, batch_size=batch_size)


def test_rounding_that_depends_on_the_batch_is_allowed():
    game = network_game(autocast=torch.bfloat16)
    assert game.grand.dtype == torch.float32
    exact = network_game()
    assert torch.allclose(game.grand, exact.grand, atol=0.05)
    assert not torch.equal(game.grand, exact.grand)  # autocast did happen


@pytest.mark.parametrize("bound", [{"memory": 0}, {"batch_size": 0}, {"memory": 10}])
def test_bounds_that_hold_no_image_are_refused(bound):
    with pytest.raises(ProtoPFaithError, match="holds no image"):
        Game(flat_sum, IMAGE, PLAYERS, **bound)(torch.ones(1, 9, dtype=torch.bool))


@pytest.mark.parametrize(
    ("image", "players"),
    [
        (IMAGE, Players.windows((12, 11), 4)),
        (IMAGE, Players.windows((12, 12), 4, channels=1)),
    ],
)
def test_players_must_cover_the_image(image, players):
    with pytest.raises(ProtoPFaithError, match="do not cover the image"):
        Game(flat_sum, image, players)


def test_one_image_only():
    with pytest.raises(ProtoPFaithError, match="one image"):
        Game(flat_sum, IMAGE[None], PLAYERS)


def test_a_row_of_numbers_per_image_is_needed():
    with pytest.raises(ProtoPFaithError, match="one row of numbers per image"):
        Game(lambda images: images.mean(), IMAGE, PLAYERS)
    with pytest.raises(ProtoPFaithError, match="one row of numbers per image"):
        Game(lambda images: images, IMAGE, PLAYERS)


def test_windows_by_their_side_and_images_as_arrays():
    by_number = Game(flat_sum, IMAGE, 4)
    assert torch.equal(by_number.players.labels, Players.windows((12, 12), 4).labels)
    assert torch.equal(Game(flat_sum, IMAGE, PLAYERS.labels).players.labels, PLAYERS.labels)
    from_array = Game(flat_sum, IMAGE.numpy(), PLAYERS)
    assert torch.equal(from_array.image, IMAGE)
    assert Game(flat_sum, np.ones((1, 12, 12), dtype=np.uint8), PLAYERS).image.dtype == torch.float32
    with pytest.raises(ProtoPFaithError, match=r"channels last; .* image.transpose\(2, 0, 1\)"):
        Game(flat_sum, np.ones((12, 12, 3)), 4)
