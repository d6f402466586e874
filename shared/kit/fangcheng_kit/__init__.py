"""What every service needs to run.

    from fangcheng_kit import Kit, Servicer, run

    @asynccontextmanager
    async def open_service(settings: WalletSettings, kit: Kit) -> AsyncIterator[list[Servicer]]:
        async with open_store(settings.database) as store, running(expire_holds(store)):
            yield [Servicer(add_WalletServiceServicer_to_server, Wallet(store), WALLET_SERVICE)]

    run("wallet", WalletSettings, open_service)

``run`` reads the settings from the environment, opens the service, serves it with health,
reflection, metrics, logs, who-is-calling, access, validation and errors in place, and drains it on
SIGTERM. ``serving`` does the same inside a running event loop, for tests and tools.

A handler validates what the contract cannot, calls the core and converts. It learns who calls from
``principal.current()``, raises the errors of ``fangcheng_kit.errors``, and reads the requests of a
stream from the iterator it is given.
"""

from fangcheng_kit.app import Kit, Running, Servicer, StartFailed, run, serving
from fangcheng_kit.background import running
from fangcheng_kit.batching import Batcher
from fangcheng_kit.settings import Settings

__all__ = [
    "Batcher",
    "Kit",
    "Running",
    "Servicer",
    "Settings",
    "StartFailed",
    "run",
    "running",
    "serving",
]
