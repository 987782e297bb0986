package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

type policyPin = policy.Pin

const strongSRI = "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="

// sri is an integrity: usually a strong one.
func (d dice) sri() string {
	return pick(d, strongSRI, strongSRI, strongSRI, strongSRI, "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk= "+strongSRI, "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
}

func (d dice) lockedName() string {
	return pick(d, "a", "b", "c", "ms", "left-pad", "@s/a", "@s/b", "@t/a", "x.y", "JSONStream", "a_b", "@s/a", "b")
}

func (d dice) lockedVersion() string {
	return pick(d, "1.0.0", "1.0.0", "2.3.4", "2.3.4", "0.0.1-rc.1", "10.20.30", "1.0.0+build", "1.0.0-0", "2.3.4")
}

// whence is where an npm lockfile has a package from.
func (d dice) whence(name, version string) string {
	bare := name[strings.LastIndexByte(name, '/')+1:]
	if d.in(8) {
		return pick(d, "git+ssh://git@code.example/x/y.git#0123456789012345678901234567890123456789", "https://files.example/"+bare+".tgz", "file:../"+bare, "file:"+bare+".tgz",
			"https://npm.example/"+name+"/-/"+name+"-"+version+".tgz", "https://npm.example/download/"+name+"/"+version+"/0123")
	}
	return "https://npm.example/" + name + "/-/" + bare + "-" + version + ".tgz"
}

// packageLock is a package-lock.json.
func (d dice) packageLock() []byte {
	packages := map[string]any{"": map[string]any{"name": "project", "version": "1.0.0", "dependencies": d.wants()}}
	for range 1 + d.IntN(8) {
		d.addLocked(packages)
	}
	text, err := json.MarshalIndent(map[string]any{"name": "project", "version": "1.0.0", "lockfileVersion": pick(d, 3, 3, 3, 2), "requires": true, "packages": packages}, "", "  ")
	if err != nil {
		panic(err)
	}
	if d.in(10) {
		text = append([]byte("\ufeff"), text...)
	}
	if d.in(10) {
		text = []byte(strings.ReplaceAll(string(text), "\n", "\r\n"))
	}
	return text
}

func (d dice) wants() map[string]string {
	wants := map[string]string{}
	for range d.IntN(4) {
		wants[d.lockedName()] = pick(d, "^1.0.0", "*", "1.0.0", "npm:b@1", "file:../a", "git+https://code.example/a.git", "https://files.example/a.tgz", "workspace:*", "")
	}
	return wants
}

func (d dice) addLocked(packages map[string]any) {
	name, version := d.lockedName(), d.lockedVersion()
	if d.in(8) { // a folder of the project's own, with the link to it
		maps.DeleteFunc(packages, func(place string, _ any) bool { return strings.HasPrefix(place, "node_modules/"+name+"/") })
		folder := pick(d, "packages/", "lib/", "") + name[strings.LastIndexByte(name, '/')+1:]
		packages[folder] = map[string]any{"name": name, "version": version}
		packages["node_modules/"+name] = map[string]any{"resolved": folder, "link": true}
		return
	}
	entry := map[string]any{"version": version, "resolved": d.whence(name, version), "integrity": d.sri()}
	for key, value := range map[string]any{"dev": true, "optional": true, "peer": true, "devOptional": true, "dependencies": d.wants(), "peerDependencies": d.wants(), "engines": map[string]string{"node": ">=1"}, "hasInstallScript": true} {
		if d.in(4) {
			entry[key] = value
		}
	}
	switch d.IntN(16) {
	case 0:
		alias := d.lockedName()
		entry["name"], entry["resolved"] = alias, d.whence(alias, version)
	case 1:
		delete(entry, "integrity")
	case 2:
		delete(entry, "resolved")
	case 3:
		entry["inBundle"] = true // which npm does not believe where nothing around it brings it
	case 4:
		maps.DeleteFunc(entry, func(key string, _ any) bool { return key == "version" || key == "integrity" || key == "resolved" })
		entry["optional"] = true
	}
	if d.in(10) {
		inside := d.lockedName()
		maps.DeleteFunc(packages, func(place string, _ any) bool { return strings.HasPrefix(place, "node_modules/"+name+"/") })
		entry["bundleDependencies"], entry["dependencies"] = []string{inside}, map[string]string{inside: "*"}
		packages["node_modules/"+name+"/node_modules/"+inside] = map[string]any{"version": "1.0.0", "inBundle": true}
		packages["node_modules/"+name] = entry
		return
	}
	place := "node_modules/" + name
	if d.in(4) {
		above := pick(d, slices.Sorted(maps.Keys(packages))...)
		if place = strings.TrimPrefix(above+"/"+place, "/"); len(place) > 200 || isLink(packages[above]) {
			return
		}
		delete(entry, "inBundle") // within one that brings others it would be believed
	}
	packages[place] = entry
}

// isLink tells whether an entry leads to a folder, below whose own place npm writes what lies in it.
func isLink(entry any) bool { return entry.(map[string]any)["link"] == true }

// toolName is by what pnpm is run, in a document of its own.
const toolName = "pnpm"

// pnpmLock is a pnpm-lock.yaml of version 9, with the document of the tools before it now and then.
func (d dice) pnpmLock() []byte {
	var importers, packages, snapshots strings.Builder
	seen := map[string]bool{}
	for range 1 + d.IntN(8) {
		name, version := d.lockedName(), d.lockedVersion()
		key, resolution := name+"@"+version, fmt.Sprintf("{integrity: %s}", strings.Fields(d.sri())[0])
		switch d.IntN(14) {
		case 0:
			key, resolution = name+"@https://codeload.example/x/y/tar.gz/0123", "{tarball: https://codeload.example/x/y/tar.gz/0123}"
		case 1:
			key, resolution = name+"@file:lib", "{directory: lib, type: directory}"
		case 2:
			key, resolution = name+"@git+https://code.example/y.git#0123", "{commit: '0123', repo: https://code.example/y.git, type: git}"
		case 3:
			resolution = fmt.Sprintf("{integrity: %s, tarball: https://npm.example/download/%s/%s/0123}", strings.Fields(d.sri())[0], name, version)
		case 4:
			key, resolution = name+"@file:"+name[strings.LastIndexByte(name, '/')+1:]+".tgz", fmt.Sprintf("{integrity: %s, tarball: file:x.tgz}", strings.Fields(d.sri())[0])
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		fmt.Fprintf(&packages, "\n  '%s':\n    resolution: %s\n", key, resolution)
		if strings.Contains(key, ":") && d.in(2) {
			fmt.Fprintf(&packages, "    version: %s\n", version)
		}
		if d.in(4) {
			fmt.Fprint(&packages, "    engines: {node: '>=1'}\n    hasBin: true\n")
		}
		fmt.Fprintf(&snapshots, "\n  '%s%s':\n    optional: true\n", key, pick(d, "", "", "(b@1.0.0)", "(@s/a@1.0.0)(b@2.3.4)"))
		asked := name + pick(d, "", "-alias")
		if seen[asked] {
			continue
		}
		seen[asked] = true
		fmt.Fprintf(&importers, "      '%s':\n        specifier: '*'\n        version: %s\n", asked, strings.TrimPrefix(key, name+"@"))
	}
	text := "lockfileVersion: '9.0'\n\nsettings:\n  autoInstallPeers: true\n\nimporters:\n\n  .:\n    dependencies:\n" + importers.String() + "\npackages:\n" + packages.String() + "\nsnapshots:\n" + snapshots.String()
	if d.in(8) {
		text = "---\nlockfileVersion: '9.0'\n\nimporters:\n\n  .:\n    configDependencies: {}\n    packageManagerDependencies:\n      pnpm:\n        specifier: 11.0.0\n        version: 11.0.0\n\npackages:\n\n  pnpm@11.0.0:\n    resolution: {integrity: " + strings.Fields(d.sri())[0] + "}\n\nsnapshots:\n\n  pnpm@11.0.0: {}\n\n---\n" + text
	}
	if d.in(10) {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return []byte(text)
}
