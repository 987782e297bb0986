# node.sh CLIENT [FEW]: asks npm or pnpm, under the lists of node.yaml. /locks has
# what node-lock.sh made. The older ones are asked only what they may answer in
# another way; with FEW only the first questions are asked.
. /matrix/ask.sh
. /matrix/node-client.sh

project; ask 'allowed' add is-number@^6
project; ask 'the newest is outside the range' add ms
project; ask 'pinned, outside the range' add ms@2.1.3
ask 'cofferdam why, after that' cofferdam why
project; ask 'open, outside the range' add ms@^2.1.0
project; ask 'on no list' add left-pad@1.3.0
if [ -n "$2" ]; then
	summary
	exit
fi
project; ask 'blocked' add isarray
project; ask 'a dependency on no list, which an allowed package wants' lock is-even@1.0.0
project; ask 'with its dependencies' add chalk@4.1.2
project; ask 'install scripts, which its entry does not allow' add @scarf/scarf@1.4.0
project; ask 'install scripts, which its entry allows' add simple-git-hooks@2.11.1
project; ask 'no such project' add cofferdam-has-no-such-project

locked outside; ask 'a lockfile with what is on no list' from_lockfile
locked bytes; ask 'a lockfile with another digest' from_lockfile
locked moved; ask "a lockfile that names another package's file" from_lockfile

project; echo 'registry=https://evil.example/' >.npmrc; ask 'an index of its own choosing' add is-number@6.0.0
project; ask 'a direct address' patiently add https://evil.example/left-pad-1.3.0.tgz
project "\"packageManager\": \"$other\""; ask 'another version of the client' another_version

case $client in
npm10 | pnpm9)
	summary
	exit
	;;
esac

project; ask 'under another name' add is-positive@npm:left-pad@1.3.0
project; ask 'a git address' add git+https://evil.example/left-pad.git
project; ask "a repository's short name" add github:left-pad/left-pad
project; ask 'a file that is not there' add file:./left-pad-1.3.0.tgz
project; ask 'another package manager' run_once yarn@1.22.22 --version
ask 'headers to compile with' fetch https://downloads.cofferdam.internal/node-headers/v24.0.0/SHASUMS256.txt
ask 'a browser' fetch "$PLAYWRIGHT_DOWNLOAD_HOST/builds/chromium/1200/chromium-linux.zip"

project; add is-number@6.0.0 >/dev/null 2>&1
ask 'what is outdated' "$client" outdated
ask 'what is known of a release' "$client" view is-number@6.0.0 name version license
ask 'what is known of a refused one' "$client" view left-pad@1.3.0 name version
case $client in
npm*) ask 'the archive of a refused one' "$client" pack left-pad@1.3.0 ;;
esac
ask 'known vulnerabilities' "$client" audit
summary
