#!/bin/sh
# Prints the secrets that the overlay `dev` refers to, and the key set: for trying, since they pass
# through this host.
#
#     make-secrets.sh FOLDER | kubectl -n fangcheng-dev apply -f -
#
# FOLDER keeps them, and the key that signs tokens (FOLDER/keys/signing.pem), for you alone. Once a month
# do it again: what is there stays, and certificates are made anew in time. In production all of it
# comes from your own vault and authority.
set -eu
if [ $# != 1 ]; then
    echo "usage: make-secrets.sh FOLDER" >&2
    exit 2
fi
umask 077
mkdir -p "$1"
sh "$(dirname "$0")/../make-certificates.sh" "$1" >&2
cd "$1"

# kept NAME VALUE: the value, as it was the first time.
kept() {
    if [ ! -s "$1.txt" ]; then printf '%s' "$2" >"$1.txt"; fi
    cat "$1.txt"
}
random() { kept "$1" "$(openssl rand -hex 32)"; }
encoded() { openssl base64 -A -in "$1"; }

wallet=$(random wallet) table=$(random table) matchmaking=$(random matchmaking)
console=$(random console)
cat <<YAML
apiVersion: v1
kind: ConfigMap
metadata: {name: jwks}
binaryData:
  jwks.json: $(encoded keys/jwks/jwks.json)
---
apiVersion: v1
kind: Secret
metadata: {name: bots-key}
data:
  signing.pem: $(encoded keys/bots/signing.pem)
---
apiVersion: v1
kind: Secret
metadata: {name: console}
stringData: {secret: "$(random console-secret)"}
---
apiVersion: v1
kind: Secret
metadata: {name: journal}
stringData: {keys: "$(kept journal "$(date +%Y-%m):$(openssl rand -base64 32)")"}
---
apiVersion: v1
kind: Secret
metadata: {name: postgres}
stringData:
  POSTGRES_PASSWORD: "$(random postgres)"
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
  tls.crt: $(encoded tls/public/tls.crt)
  tls.key: $(encoded tls/public/tls.key)
YAML
for name in evaluation table matchmaking wallet console bots edge; do
    secret=$name-tls
    if [ "$name" = edge ]; then secret=edge-identity; fi
    cat <<YAML
---
apiVersion: v1
kind: Secret
metadata: {name: $secret}
type: kubernetes.io/tls
data:
  tls.crt: $(encoded "tls/$name/tls.crt")
  tls.key: $(encoded "tls/$name/tls.key")
  ca.crt: $(encoded "tls/$name/ca.crt")
YAML
done
