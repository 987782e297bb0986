# node-lock.sh CLIENT [ONE]: projects with lockfiles of the client, in /locks; or
# the first of them only.
. /matrix/node-client.sh
set -e
# make NAME PACKAGE...
make() {
	project
	name=$1
	shift
	lock "$@" >&2
	mkdir "/locks/$name"
	cp package.json *lock* "/locks/$name"
}
# another NAME FROM EDIT: like FROM, with its lockfile edited.
another() {
	mkdir "/locks/$1"
	cp "/locks/$2"/* "/locks/$1"
	sed -i "$3" "/locks/$1"/*lock*
}
digest_of() { grep -o 'sha512-[A-Za-z0-9+/=]*' "/locks/$1"/*lock* | tail -n 1; }

make locked chalk@4.1.2 is-number@7.0.0
[ -z "$2" ] || exit 0
make older is-number@6.0.0
make outside left-pad@1.3.0
make ms ms@2.0.0
# The same, with another digest.
another bytes ms "s#$(digest_of ms)#$(digest_of outside)#"
# The same, with the address and the digest of another package's file; pnpm
# writes no addresses that follow from the name.
another moved ms "s#$(digest_of ms)#$(digest_of outside)#; s#/ms/-/ms-2.0.0.tgz#/left-pad/-/left-pad-1.3.0.tgz#;
	s#{integrity: [^}]*#&, tarball: $(npm config get registry)left-pad/-/left-pad-1.3.0.tgz#"
