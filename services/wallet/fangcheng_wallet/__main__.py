"""``python -m fangcheng_wallet``: the wallet as a process of its own."""

from fangcheng_kit import run
from fangcheng_wallet.collector import relax
from fangcheng_wallet.service import open_service
from fangcheng_wallet.settings import WalletSettings

if __name__ == "__main__":
    relax()
    run("wallet", WalletSettings, open_service)
