#!/bin/sh
# Makes what must be secret and differ from host to host: .env from .env.example with a random value
# for each empty one, and, unless tls/ holds one, a certificate for trying, of its own authority.
# What is there already stays.
set -eu
cd "$(dirname "$0")"
umask 077

if [ ! -e .env ]; then
    while IFS= read -r line; do
        case $line in
        '#'* | '' | *=?*) echo "$line" ;;
        *=) echo "$line$(openssl rand -hex 32)" ;;
        esac
    done <.env.example >.env.new
    mv .env.new .env
    echo "made .env"
fi

if [ ! -e tls/tls.crt ]; then
    mkdir -p tls
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 90 \
        -subj "/CN=Fangcheng, for trying" -addext "subjectAltName=DNS:localhost,IP:127.0.0.1" \
        -keyout tls/tls.key -out tls/tls.crt 2>/dev/null
    # Envoy in its container is user 10001.
    chown -R 10001:10001 tls 2>/dev/null || chmod -R a+rX tls
    echo "made tls/tls.crt, good for 90 days"
fi
