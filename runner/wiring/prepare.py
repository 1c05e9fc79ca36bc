"""
From an agent's package to what instances are made of: a program under its grants, and its image.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runner.digest import show
from runner.errors import SnapshotCorrupt, SnapshotIncompatible
from runner.kernel.boot import adopt
from runner.kernel.state import MachineState
from runner.package.agent import AgentPackage, pack
from runner.policy.grants import Binding, Grants
from runner.snapshot import Snapshot
from runner.snapshot import decode as decode_snapshot
from runner.snapshot import encode as encode_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runner.kernel.admission import Admitted
    from runner.kernel.image import Image
    from runner.kernel.limits import Limits
    from runner.kernel.program import Program
    from runner.kernel.slice import LogLine
    from runner.package.manifest import Manifest
    from runner.wiring.host import Host
    from runner.wiring.options import Options

_NOTHING: Final = bytes(32)
"""
What an agent's own image stands on: zeros.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """
    An agent, ready to make instances of.

    Attributes:
        package: As it was loaded.
        admitted: What admission found.
        grants: What the operator allowed.
        limits: What an instance may use.
        program: Compiled, and linked to exactly what is granted.
        image: Where instances start.
    """

    package: AgentPackage
    admitted: Admitted
    grants: Grants
    limits: Limits
    program: Program
    image: Image

    @property
    def packed(self) -> bytes:
        """
        The agent as one file.
        """
        return pack(self.package.wasm, self.package.manifest, self.package.image)


def prepare(
    host: Host,
    package: AgentPackage,
    *,
    grants: Grants,
    limits: Mapping[str, int],
    on_log: Callable[[LogLine], None],
) -> Prepared:
    """
    Admit, compile, link and boot.

    Raises:
        ModuleRejected: If admission refuses the module.
        Denied: If it needs what is not granted.
        SnapshotCorrupt: If the image that it carries is none.
        SnapshotIncompatible: If that image is not of this module.
        RunnerError: If it fails while it boots.
    """
    admitted = host.admit(package.wasm)
    binding = grants.resolve(package.name, admitted.imports, used_names(package.manifest, grants))
    program = host.program(admitted, binding)
    bounds = package.manifest.limits_under(limits)
    if package.image is None:
        image, lines = host.boot(program, bounds)
        for line in lines:
            on_log(line)
    else:
        image = carried_image(package, admitted, max_memory_bytes=bounds.memory_bytes)
    return Prepared(
        package=package, admitted=admitted, grants=grants, limits=bounds, program=program, image=image
    )


def prepare_under(host: Host, package: AgentPackage, options: Options) -> Prepared:
    """
    As `prepare`, under a caller's options.
    """
    grants = Grants.parse(options.allow, options.deny)
    return prepare(host, package, grants=grants, limits=options.limits, on_log=options.on_log)


def used_names(manifest: Manifest, grants: Grants) -> tuple[str, ...] | None:
    """
    What an agent is taken to use, for `Grants.resolve`.

    An engine imports every operation, whatever its agent does. One whose manifest does not say what it uses
    gets what is granted; the rest is bound to a refusal, which its code meets when it asks.
    """
    if manifest.uses is None and manifest.is_interpreted:
        return tuple(sorted(grants.granted_operations()))
    return manifest.uses


def carried_image(package: AgentPackage, admitted: Admitted, *, max_memory_bytes: int) -> Image:
    """
    The image that an agent file carries.

    Args:
        package: Carries one.
        admitted: What admission found of its module.
        max_memory_bytes: Refuse an image whose memory is larger, before any of it is decompressed.

    Raises:
        SnapshotCorrupt: If it is damaged, or more than an image.
        SnapshotIncompatible: If it is not of this module.
        MemoryExceeded: If its memory is larger than `max_memory_bytes`.
    """
    origin = str(package.origin)
    stored = decode_snapshot(package.image or b"", max_memory_bytes=max_memory_bytes, source=origin)
    if stored.code_digest != admitted.code_digest:
        raise SnapshotIncompatible("code_digest", show(admitted.code_digest), show(stored.code_digest))
    mind = stored.state.mind
    if (stored.image_digest, stored.state, stored.host) != (_NOTHING, MachineState(mind=mind), {}):
        raise SnapshotCorrupt("an agent's image stands on zeros and holds nothing but a mind", path=origin)
    image = adopt(mind, admitted)
    if image.digest != stored.memory_digest:
        raise SnapshotIncompatible("memory_digest", show(image.digest), show(stored.memory_digest))
    return image


def freeze_image(host: Host, package: AgentPackage, limits: Mapping[str, int]) -> tuple[bytes, Image]:
    """
    Boot an agent, and give its image in the form that its file carries, too.

    Raises:
        RunnerError: If the module is refused, or fails while it boots.
    """
    admitted = host.admit(package.wasm)
    # Nothing can be asked for while booting, whatever is linked.
    program = host.program(admitted, Binding(frozenset(admitted.imports), frozenset()))
    bounds = package.manifest.limits_under(limits)
    image, _ = host.boot(program, bounds)
    return image_section(package.name, admitted, bounds, image), image


def image_section(agent: str, admitted: Admitted, limits: Limits, image: Image) -> bytes:
    """
    An agent's image in the form that its file carries: a snapshot that stands on zeros.
    """
    snapshot = Snapshot(
        agent=agent,
        code_digest=admitted.code_digest,
        image_digest=_NOTHING,
        imports=admitted.imports,
        limits=limits,
        position=0,
        created_at_ms=0,
        state=MachineState(mind=image.mind),
        host={},
        memory_digest=image.digest,
    )
    return encode_snapshot(snapshot)
