#!/bin/sh
# Builds the suite into a folder, as the image has it. The Dockerfile runs these steps, and so does
# tests/deploy in a bare Debian, without any Docker:
#
#     build.sh system                   what the finished image needs of Debian, and its user
#     build.sh tools SOURCE TOOLS       what builds the rest: no part of the finished image
#     build.sh libraries SOURCE TOOLS TARGET    everybody else's packages, as locked
#     build.sh suite SOURCE TOOLS TARGET        our own, and the machine code of the rules
#
# SOURCE is this repository; TARGET must be the folder's path in the finished image too. Nothing is
# compiled from C: every package has a wheel, and hashes are checked. Package indexes are those that
# pip and uv are set up for.
set -eu

USER_ID=10001

system() {
    apt-get update -q
    apt-get install -q -y --no-install-recommends python3
    useradd --uid "$USER_ID" --user-group --no-create-home --home-dir /tmp \
        --shell /usr/sbin/nologin fangcheng
    rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
}

tools() {
    if [ "$(id -u)" = 0 ] && ! python3 -c 'import ensurepip' 2>/dev/null; then
        apt-get update -q
        apt-get install -q -y --no-install-recommends ca-certificates python3-venv
    fi
    python3 -m venv "$2"
    "$2/bin/pip" --disable-pip-version-check --quiet install \
        --no-deps --only-binary :all: --require-hashes --requirement "$1/requirements/bootstrap.lock"
}

libraries() {
    python3 -m venv --without-pip "$3"
    install_into "$2" "$3" --only-binary :all: --require-hashes \
        --requirement "$1/requirements/image.lock"
}

suite() {
    wheels=$(mktemp -d)
    for project in "$1"/protos "$1"/shared/* "$1"/services/*; do
        if [ -f "$project/pyproject.toml" ]; then
            (cd "$project" && "$2/bin/hatchling" build -t wheel -d "$wheels" >"$wheels/log" 2>&1) ||
                { cat "$wheels/log" >&2; exit 1; }
        fi
    done
    install_into "$2" "$3" "$wheels"/*.whl
    rm -r "$wheels"
    sed "1s|.*|#!$3/bin/python -I|" "$1/deploy/image/healthy.py" >"$3/bin/fangcheng-healthy"

    # Which packages belong together is told by their metadata; that all are there, and fit, by this.
    "$2/bin/uv" pip check --quiet --python "$3/bin/python"
    FANGCHENG_CACHE_DIR="$3/cache" "$3/bin/python" -m fangcheng_evaluation.warm
    # Everybody may read it, and nobody needs to write to it any more.
    chmod -R u+rwX,go+rX,go-w "$3"
    chmod 755 "$3/bin/fangcheng-healthy"
}

install_into() {
    uv=$1/bin/uv python=$2/bin/python
    shift 2
    # Compiled here, since a service cannot write what it compiles.
    "$uv" pip install --quiet --python "$python" --no-deps --compile-bytecode "$@"
}

step=$1
shift
case $step in
system | tools | libraries | suite) "$step" "$@" ;;
*)
    echo "build.sh: no step $step" >&2
    exit 2
    ;;
esac
