#!/bin/sh
# A database for each service that keeps something, owned by a role of its own, which may connect to
# no other. The image of PostgreSQL runs it once, when the server has no data yet; with the usual
# variables of psql (PGHOST, PGUSER, ...) it does the same on any server, by a role that may.
set -eu

create() {
    # The password comes by the environment: arguments are seen by everybody on the host.
    SERVICE=$1 PASSWORD=$2 psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 \
        --username "${POSTGRES_USER:-${PGUSER:-postgres}}" --dbname postgres <<'SQL'
\getenv service SERVICE
\getenv password PASSWORD
CREATE ROLE :"service" LOGIN PASSWORD :'password';
CREATE DATABASE :"service" OWNER :"service" TEMPLATE template0 ENCODING 'UTF8';
REVOKE CONNECT ON DATABASE :"service" FROM PUBLIC;
SQL
}

create wallet "$WALLET_PASSWORD"
create table "$TABLE_PASSWORD"
create matchmaking "$MATCHMAKING_PASSWORD"
create console "$CONSOLE_PASSWORD"
