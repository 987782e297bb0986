# node-offline.sh CLIENT: asks npm or pnpm when no upstream can be reached.
. /matrix/ask.sh
. /matrix/node-client.sh

project; ask 'offline: what was fetched before' add is-number@6.0.0
locked older; ask 'offline: a lockfile of what was fetched before' from_lockfile
project; ask 'offline: what was not' add is-obj@3.0.0
summary
