# What the client that $1 names, an npm or a pnpm, calls things.
client=$1
case $client in
npm*)
	other=npm@10.9.0
	add() { "$client" install "$@"; }
	from_lockfile() { "$client" ci; }
	run_once() { "$client" exec --yes -- "$@"; }
	another_version() { "$client" install --global "$other"; }
	lock() { "$client" install --package-lock-only "$@"; }
	;;
pnpm*)
	other=pnpm@10.1.0
	add() { "$client" add "$@"; }
	from_lockfile() { "$client" install --frozen-lockfile; }
	run_once() { "$client" dlx "$@"; }
	another_version() {
		# The sandbox tells pnpm to ignore the field; the project tells it not to.
		echo 'manage-package-manager-versions=true' >.npmrc
		"$client" install
	}
	lock() { "$client" add --lockfile-only "$@"; }
	;;
esac

# patiently COMMAND...: of what goes on trying for more than a minute (pnpm, an
# address whose name is none) only what is said until it waits.
patiently() {
	: >/tmp/said
	"$@" >/tmp/said 2>&1 &
	until grep -q 'Will retry in [0-9]* \(seconds\|minute\)' /tmp/said || ! kill -0 $! 2>/dev/null; do
		sleep 0.1
	done
	kill $! 2>/dev/null
	wait $! 2>/dev/null
	code=$?
	cat /tmp/said
	return $code
}

projects=0
# project [LINE]: goes to a new project, with a line more in its package.json.
project() {
	projects=$((projects + 1))
	mkdir -p "$HOME/$projects/project"
	cd "$HOME/$projects/project"
	echo '{ "name": "project", "version": "1.0.0"'"${1:+, $1}"' }' >package.json
}

# locked NAME: goes to a copy of a project with a lockfile.
locked() {
	project
	cp "/locks/$1"/* .
}

fetch() { curl -sS --fail-with-body "$1"; }
