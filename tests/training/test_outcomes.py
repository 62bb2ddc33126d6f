import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ProtoPNet, XProtoNet
from protopfaith.training import load_recipe
from protopfaith.training.outcomes import check_outcome


@pytest.mark.parametrize("name", ["occurrence", "consistency"])
def test_what_is_for_findings_is_refused_for_classes(name: str) -> None:
    with pytest.raises(ProtoPFaithError, match=f"costs.{name} is for networks with occurrence maps"):
        check_outcome("one", ProtoPNet("small", 2, 1, 4), load_recipe("birds", [f"costs.{name}=1"]))
    with pytest.raises(ProtoPFaithError, match="choose another"):
        check_outcome("one", XProtoNet("small", 2, 2, 4), load_recipe("birds"))
