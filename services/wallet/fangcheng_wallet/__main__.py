"""``python -m fangcheng_wallet``."""

from fangcheng_kit import run
from fangcheng_wallet.service import open_service
from fangcheng_wallet.settings import WalletSettings

if __name__ == "__main__":
    run("wallet", WalletSettings, open_service)
