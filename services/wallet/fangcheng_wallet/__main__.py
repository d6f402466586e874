"""``python -m fangcheng_wallet``: the wallet as a process of its own."""

from fangcheng_kit import run
from fangcheng_kit.collector import relax
from fangcheng_wallet.service import open_service
from fangcheng_wallet.settings import WalletSettings

if __name__ == "__main__":
    # A settlement makes no cycles, and looking for them would cost it a third of its time.
    relax(100_000, 50, 100)
    run("wallet", WalletSettings, open_service)
