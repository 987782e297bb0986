package lockfile

import (
	"net/url"
	"path"
	"strings"
)

// Origin is where a lockfile has a package from, if it says so.
type Origin struct {
	Name string // as it stands there
	Line int
	// Registry is its address; "": it comes from a directory, a repository or an address of its own. Of a tarball whose registry does not
	// show in its address, it is that address.
	Registry string
}

// originReader reads where one format has its packages from.
type originReader func(o *origins, root *value) error

// SaysOrigins tells by a file's name whether Origins reads it.
func SaysOrigins(name string) bool {
	read, _ := originsOf(path.Base(name))
	return read != nil
}

// Origins lists where a lockfile has packages from, of which it says so. Its format is told by the last part of its name; of others
// there is nothing. It takes versions that Parse does not. The error is ErrInvalid and reads "name:line: sentence".
func Origins(name string, data []byte) ([]Origin, error) {
	read, parse := originsOf(path.Base(name))
	if read == nil {
		return nil, nil
	}
	o := &origins{b: &builder{name: name}}
	root, err := parse(o.b, data)
	if err == nil {
		err = o.b.object(root, "the document")
	}
	if err == nil {
		err = read(o, root)
	}
	return o.all, err
}

type origins struct {
	b   *builder
	all []Origin
}

func (o *origins) add(name string, line int, registry string) {
	if name != "" && len(o.all) < maxPins {
		o.all = append(o.all, Origin{name, line, registry})
	}
}

// textOf is the string at a key; "" if there is none.
func textOf(v *value, key string) string {
	if v.kind != mapping {
		return ""
	}
	if f := v.get(key); f != nil && f.kind == text {
		return f.text
	}
	return ""
}

// itemsOf are the values of a list or a mapping at a key.
func itemsOf(v *value, key string) []*value {
	if v.kind != mapping {
		return nil
	}
	if f := v.get(key); f != nil {
		return f.values
	}
	return nil
}

// npm reads versions 2 and 3, and the tree of version 1.
func (o *origins) npm(root *value) error {
	if packages, err := o.b.child(root, "packages", mapping); err != nil || packages != nil {
		if err != nil {
			return err
		}
		for i, place := range packages.keys {
			o.npmEntry(installedAs(place), packages.values[i], "resolved")
		}
		return nil
	}
	return o.npmTree(root)
}

func (o *origins) npmTree(of *value) error {
	tree, err := o.b.child(of, "dependencies", mapping)
	if err != nil || tree == nil {
		return err
	}
	for i, name := range tree.keys {
		entry := tree.values[i]
		if entry.kind != mapping {
			continue
		}
		o.npmEntry(name, entry, "resolved")
		if err := o.npmTree(entry); err != nil {
			return err
		}
	}
	return nil
}

// npmEntry notes an entry under the name that it is installed by, and the one that its registry has.
func (o *origins) npmEntry(name string, entry *value, key string) {
	from := textOf(entry, key)
	if from == "" {
		return
	}
	names := []string{name}
	if own := textOf(entry, "name"); own != "" && own != name {
		names = append(names, own)
	}
	for _, one := range names {
		o.add(one, entry.line, registryOf(from, names))
	}
}

// registryOf is the registry of a tarball's address, which has REGISTRY/NAME/-/FILE in the usual form; "" for what no registry has.
func registryOf(from string, names []string) string {
	if _, web := webPath(from); !web {
		return ""
	}
	from, _, _ = strings.Cut(from, "#")
	unescaped := strings.ReplaceAll(strings.ReplaceAll(from, "%2f", "/"), "%2F", "/")
	for _, name := range names {
		if registry, _, usual := strings.Cut(unescaped, "/"+name+"/-/"); usual {
			return registry
		}
	}
	return from
}

func (o *origins) pnpm(root *value) error {
	packages, err := o.b.child(root, "packages", mapping)
	if err != nil || packages == nil {
		return err
	}
	for i, key := range packages.keys {
		entry := packages.values[i]
		if entry.kind != mapping {
			continue
		}
		resolution := entry.get("resolution")
		name, _, err := o.b.pnpmKey(entry.line, key, entry)
		if err != nil || resolution == nil || resolution.kind != mapping {
			continue // of an older version, which says nothing of registries either
		}
		tarball := textOf(resolution, "tarball")
		switch {
		case tarball != "":
			o.add(name, entry.line, registryOf(tarball, []string{name}))
		case resolution.get("directory") != nil, resolution.get("repo") != nil:
			o.add(name, entry.line, "")
		}
	}
	return nil
}

func (o *origins) uv(root *value) error {
	for _, p := range itemsOf(root, "package") {
		source := p.get("source")
		if source == nil || source.kind != mapping {
			continue
		}
		o.add(textOf(p, "name"), p.line, textOf(source, "registry"))
	}
	return nil
}

func (o *origins) poetry(root *value) error {
	for _, p := range itemsOf(root, "package") {
		source := p.get("source")
		if source == nil || source.kind != mapping {
			continue // Poetry's own default
		}
		registry := ""
		if textOf(source, "type") == "legacy" {
			registry = textOf(source, "url")
		}
		o.add(textOf(p, "name"), p.line, registry)
	}
	return nil
}

func (o *origins) pdm(root *value) error {
	for _, p := range itemsOf(root, "package") {
		for _, key := range []string{"git", "hg", "svn", "bzr", "path", "url"} {
			if p.get(key) != nil {
				o.add(textOf(p, "name"), p.line, "")
			}
		}
	}
	return nil
}

func (o *origins) pylock(root *value) error {
	for _, p := range itemsOf(root, "packages") {
		if index := textOf(p, "index"); index != "" {
			o.add(textOf(p, "name"), p.line, index)
		}
		for _, key := range []string{"vcs", "directory", "archive"} {
			if p.get(key) != nil {
				o.add(textOf(p, "name"), p.line, "")
			}
		}
	}
	return nil
}

// pipfile reads what names the sources that are listed before.
func (o *origins) pipfile(root *value) error {
	sources := map[string]string{}
	if meta := root.get("_meta"); meta != nil {
		for _, s := range itemsOf(meta, "sources") {
			sources[textOf(s, "name")] = textOf(s, "url")
		}
	}
	for i, section := range root.keys {
		if section == "_meta" || root.values[i].kind != mapping {
			continue
		}
		for n, name := range root.values[i].keys {
			entry := root.values[i].values[n]
			if entry.kind != mapping {
				continue
			}
			if index := textOf(entry, "index"); index != "" {
				o.add(name, entry.line, sources[index])
			}
			for _, key := range []string{"git", "hg", "svn", "bzr", "path", "file", "url"} {
				if entry.get(key) != nil {
					o.add(name, entry.line, "")
				}
			}
		}
	}
	return nil
}

// WithoutAccount is an address without the name and password that may stand in it, as a person may be shown it.
func WithoutAccount(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that can't be read"
	}
	u.User = nil
	return u.String()
}
