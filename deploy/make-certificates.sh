#!/bin/sh
# Makes keys for trying, with openssl (1.1.1 or newer) alone:
#
#     make-certificates.sh FOLDER
#
#     tls/NAME/tls.crt, tls.key, ca.crt     a certificate for each service, bots and the edge, by which
#                                           they know each other: 90 days
#     tls/public/tls.crt, tls.key           what the edge shows to players: 90 days
#     authority/ca.crt, ca.key              who has issued those of the services: a year
#     keys/signing.pem                      signs tokens for everybody
#     keys/bots/signing.pem                 signs tokens for players alone: what bots need
#     keys/jwks/jwks.json                   the public keys of both: all that services need
#
# What is there stays, and a certificate of the services that has less than 30 days left is made anew:
# run it once a month. Services and Envoy take it up while they run. Your own files may lie there
# instead. authority/ and keys/signing.pem are for you alone.
set -eu
umask 077
folder=$1
mkdir -p "$folder/authority" "$folder/keys/bots" "$folder/keys/jwks"
cd "$folder"

DAYS=90
MONTH_SECONDS=2592000
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:prime256v1 -out "$1" 2>/dev/null; }

good() { openssl x509 -checkend "$MONTH_SECONDS" -noout -in "$1" >/dev/null 2>&1; }

# issue NAME URI HOST: a certificate that names its holder by the URI; HOST is where it may be found.
issue() {
    to=tls/$1
    if good "$to/tls.crt"; then return; fi
    mkdir -p "$to"
    key "$work/tls.key"
    openssl req -new -key "$work/tls.key" -subj "/CN=$1" -out "$work/csr" 2>/dev/null
    cat >"$work/extensions" <<EXTENSIONS
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectAltName = URI:spiffe://fangcheng/$2, DNS:$3, DNS:localhost, IP:127.0.0.1
EXTENSIONS
    openssl x509 -req -in "$work/csr" -CA authority/ca.crt -CAkey authority/ca.key \
        -set_serial "0x$(openssl rand -hex 16)" -days "$DAYS" -sha256 \
        -extfile "$work/extensions" -out "$work/tls.crt" 2>/dev/null
    cp authority/ca.crt "$work/ca.crt"
    # Moved into place: who looks sees the old file or the new one.
    mv "$work/ca.crt" "$work/tls.key" "$work/tls.crt" "$to/"
    echo "made $to, good for $DAYS days"
}

if ! good authority/ca.crt; then
    key authority/ca.key
    openssl req -x509 -new -key authority/ca.key -days 365 -subj "/CN=Fangcheng, for trying" \
        -addext "keyUsage=critical,keyCertSign" -out authority/ca.crt 2>/dev/null
    rm -rf tls/evaluation tls/table tls/matchmaking tls/wallet tls/console tls/bots tls/edge
    echo "made authority/ca.crt"
fi
for service in evaluation table matchmaking wallet console bots; do
    issue "$service" "service/$service" "$service"
done
issue edge proxy/edge edge

if [ ! -e tls/public/tls.crt ]; then
    mkdir -p tls/public
    key tls/public/tls.key
    openssl req -x509 -new -key tls/public/tls.key -days "$DAYS" -subj "/CN=Fangcheng, for trying" \
        -addext "subjectAltName=DNS:localhost,DNS:edge,IP:127.0.0.1" -out tls/public/tls.crt \
        2>/dev/null
    echo "made tls/public, good for $DAYS days"
fi

# public FILE KID MORE: the public key of FILE as a key set has it: its last 32 bytes, in base64url.
public() {
    x=$(openssl pkey -in "$1" -pubout -outform DER | tail -c 32 | openssl base64 -A |
        tr '+/' '-_' | tr -d '=')
    printf '{"kid": "%s", "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "x": "%s"%s}' "$2" "$x" "$3"
}

if [ ! -e keys/jwks/jwks.json ]; then
    for file in keys/signing.pem keys/bots/signing.pem; do
        openssl genpkey -algorithm ed25519 -out "$file"
    done
    printf '{"keys": [\n  %s,\n  %s\n]}\n' "$(public keys/signing.pem trying '')" \
        "$(public keys/bots/signing.pem bots ', "kinds": ["player"]')" >"$work/jwks.json"
    mv "$work/jwks.json" keys/jwks/
    echo "made keys"
fi

# Those who read them in containers are user 10001; where that cannot be said, everybody may.
for read in tls keys/bots keys/jwks; do
    chown -R 10001:10001 "$read" 2>/dev/null || chmod -R a+rX "$read"
done
chmod a+x . keys
