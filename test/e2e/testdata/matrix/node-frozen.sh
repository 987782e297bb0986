# node-frozen.sh CLIENT: asks npm or pnpm in a run that is held to lockfiles.
. /matrix/ask.sh
. /matrix/node-client.sh

locked locked; ask 'frozen: what the lockfile has' from_lockfile
project; ask 'frozen: what the lockfile has, by its name alone' add is-number
locked ms; ask 'frozen: what the lockfile has, with other bytes' from_lockfile
locked outside; ask 'frozen: what the lockfile does not have' from_lockfile
locked older; ask "frozen: another version than the lockfile's" from_lockfile
summary
