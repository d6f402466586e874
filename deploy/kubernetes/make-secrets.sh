#!/bin/sh
# Prints the secrets that the overlay `dev` refers to, with random values: for trying, since they pass
# through this host and are kept nowhere else. In production they come from your own vault.
set -eu
random() { openssl rand -hex 32; }
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 90 \
    -subj "/CN=Fangcheng, for trying" -addext "subjectAltName=DNS:localhost,DNS:edge,IP:127.0.0.1" \
    -keyout "$folder/tls.key" -out "$folder/tls.crt" 2>/dev/null
wallet=$(random) table=$(random) matchmaking=$(random) console=$(random)
cat <<YAML
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {dev-key: "$(random)"}
---
apiVersion: v1
kind: Secret
metadata: {name: postgres}
stringData:
  POSTGRES_PASSWORD: "$(random)"
  WALLET_PASSWORD: "$wallet"
  TABLE_PASSWORD: "$table"
  MATCHMAKING_PASSWORD: "$matchmaking"
  CONSOLE_PASSWORD: "$console"
---
apiVersion: v1
kind: Secret
metadata: {name: databases}
stringData:
  wallet: postgresql://wallet:$wallet@postgres/wallet
  table: postgresql://table:$table@postgres/table
  matchmaking: postgresql://matchmaking:$matchmaking@postgres/matchmaking
  console: postgresql://console:$console@postgres/console
---
apiVersion: v1
kind: Secret
metadata: {name: edge-tls}
type: kubernetes.io/tls
data:
  tls.crt: $(openssl base64 -A -in "$folder/tls.crt")
  tls.key: $(openssl base64 -A -in "$folder/tls.key")
YAML
