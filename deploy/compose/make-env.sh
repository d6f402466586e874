#!/bin/sh
# Makes what must be secret and differ from host to host: .env, with a random value for whatever is
# empty in .env.example, and certificates and keys for trying in tls/, keys/ and authority/. What is
# there already stays; what another version asks for besides is added.
set -eu
cd "$(dirname "$0")"
umask 077

touch .env
while IFS= read -r line; do
    case $line in
    '#'* | '') continue ;;
    esac
    name=${line%%=*}
    if grep -q "^$name=" .env; then continue; fi
    case $line in
    *=?*) ;;
    # A key of 32 bytes, under a name by which it is known when there is a newer one.
    *_JOURNAL_KEYS=) line="${line}$(date +%Y-%m):$(openssl rand -base64 32)" ;;
    *) line="$line$(openssl rand -hex 32)" ;;
    esac
    echo "$line" >>.env
    echo "made $name"
done <.env.example

sh ../make-certificates.sh .
