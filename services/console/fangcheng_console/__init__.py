"""Console of Fangcheng: live tables, hands, wallets and processes in a browser."""
