from dataclasses import dataclass
import torch
from torch.nn import functional

@dataclass(frozen=True)
class Augmentation:
    rotation: float = 0.0
    shear: float = 0.0
    translation: float = 0.0
    scale: tuple[float, float] = (1.0, 1.0)
    flip: float = 0.0

def augment(pixels, a, generator):
    n, _, h, w = pixels.shape
    d = pixels.device
    u = lambda lo, hi: torch.rand(n, generator=generator, device=d) * (hi - lo) + lo
    t = torch.deg2rad(u(-a.rotation, a.rotation)); s = u(*a.scale)
    k = torch.tan(torch.deg2rad(u(-a.shear, a.shear)))
    tx, ty = u(-2 * a.translation, 2 * a.translation), u(-2 * a.translation, 2 * a.translation)
    c, sn = torch.cos(t) / s, torch.sin(t) / s
    f = torch.where(torch.rand(n, generator=generator, device=d) < a.flip, -1.0, 1.0)
    theta = torch.stack([torch.stack([c * f, sn + k * c, tx], 1), torch.stack([-sn * f, c, ty], 1)], 1)
    grid = functional.affine_grid(theta, list(pixels.shape), align_corners=False)
    return functional.grid_sample(pixels.float(), grid, align_corners=False, padding_mode="reflection")
