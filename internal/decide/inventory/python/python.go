// Package python finds Python's packages: in directories of packages by their dist-info and
// egg-info, and projects by their own files.
package python

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io/fs"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/inventory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// maxLine bounds a line of a package's metadata, in bytes.
const maxLine = 64<<10 + 1

// Layout implements inventory.Layout.
type Layout struct{}

var (
	_ inventory.Layout = Layout{}
	_ inventory.Leaver = Layout{}
)

// Usual implements inventory.Layout.
func (Layout) Usual() []string { return []string{"/usr/local/lib/python3*", "/usr/lib/python3*"} }

// Tells implements inventory.Layout.
func (Layout) Tells(entry fs.DirEntry) bool {
	return slices.Contains(projectFiles(), entry.Name()) || strings.HasSuffix(entry.Name(), ".egg-info")
}

// Holds implements inventory.Layout.
func (Layout) Holds(base string) bool { return base == "site-packages" || base == "dist-packages" }

// Leaves implements inventory.Leaver.
func (l Layout) Leaves(ecosystem pkgref.Ecosystem, path string) bool {
	return ecosystem == pkgref.Python && !l.Holds(filepath.Base(filepath.Dir(path)))
}

// Skips implements inventory.Layout: a package's own copies of others came with it.
func (Layout) Skips(base string) bool { return base == "__pycache__" || base == "_vendor" }

// projectFiles are those of a project, the one that counts first.
func projectFiles() []string { return []string{"pyproject.toml", "setup.cfg", "setup.py"} }

// Sources implements inventory.Layout; a project's version is often nowhere but in what is
// built of it.
func (Layout) Sources(w *inventory.Walk, dir string, files []string) {
	for _, file := range projectFiles() {
		if !slices.Contains(files, file) {
			continue
		}
		name, err := inventory.Recall(w, dir+"/"+file, "project", func(head []byte) string { return projectName(file, head) })
		if err == nil && name != "" {
			w.AddSource(channel.InstalledPackage{Ecosystem: string(pkgref.Python), Name: name, Path: dir})
			return
		}
	}
}

// File implements inventory.Layout.
func (Layout) File(w *inventory.Walk, dir, name string) {
	if strings.HasSuffix(name, ".egg-info") {
		addDistribution(w, filepath.Join(dir, name), "")
	}
}

// Directory implements inventory.Layout. A dist-info is a package wherever it lies.
func (Layout) Directory(w *inventory.Walk, d inventory.Directory) bool {
	switch {
	case strings.HasSuffix(d.Base, ".dist-info"):
		addDistribution(w, d.Path, "METADATA")
	case d.Holder && strings.HasSuffix(d.Base, ".egg-info"):
		addDistribution(w, d.Path, "PKG-INFO")
	default:
		return false
	}
	return true
}

// distribution is a package as its own file names it.
type distribution struct{ name, version string }

// addDistribution takes a dist-info or egg-info into the result; file is that
// with its metadata, "" if it is that file itself. One whose metadata can't be
// read is taken by its own name: hiding it would hide a package.
func addDistribution(w *inventory.Walk, path, file string) {
	own, err := inventory.Recall(w, filepath.Join(path, file), "metadata", func(head []byte) (n distribution) {
		n.name, n.version = parseMetadata(head)
		return n
	})
	if err != nil || own.name == "" {
		stem := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		own.name, own.version, _ = strings.Cut(stem, "-")
	}
	from, err := inventory.Recall(w, path+"/direct_url.json", "direct", installedFrom)
	if err != nil {
		from = "" // most have no such file
	}
	w.Add(channel.InstalledPackage{Ecosystem: string(pkgref.Python), Name: own.name, Version: own.version, Path: path, From: from})
}

// installedFrom takes from which directory, or from which built file, an installer says
// that it installed a package (PEP 610); "" if it was neither, or not of this disk.
func installedFrom(head []byte) string {
	var direct struct {
		URL         string           `json:"url"`
		DirInfo     *json.RawMessage `json:"dir_info"`
		ArchiveInfo *json.RawMessage `json:"archive_info"`
	}
	if json.Unmarshal(head, &direct) != nil || direct.DirInfo == nil && direct.ArchiveInfo == nil {
		return ""
	}
	u, err := url.Parse(direct.URL)
	if err != nil || u.Scheme != "file" || u.Host != "" || !filepath.IsAbs(u.Path) {
		return ""
	}
	return filepath.Clean(u.Path)
}

// setupName is how a setup.py names its package, if it does so plainly.
var setupName = regexp.MustCompile(`\bname\s*=\s*["']([A-Za-z0-9._-]+)["']`)

// projectName takes a project's name from the beginning of its file: without a
// reader of the whole format, what is written in an unusual way is not found.
func projectName(file string, head []byte) string {
	if file == "setup.py" {
		if m := setupName.FindSubmatch(head); m != nil {
			return string(m[1])
		}
		return ""
	}
	section := ""
	for line := range strings.Lines(string(head)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.Trim(line, "[] ")
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || strings.TrimSpace(key) != "name" || section != "project" && section != "tool.poetry" && section != "metadata" {
			continue
		}
		value, _, _ = strings.Cut(value, "#")
		return strings.Trim(strings.TrimSpace(value), `"'`)
	}
	return ""
}

// parseMetadata takes the first Name and the first Version from the headers,
// which end at an empty line.
func parseMetadata(head []byte) (name, version string) {
	lines := bufio.NewScanner(bytes.NewReader(head))
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), "\r")
		if line == "" {
			break
		}
		key, value, ok := strings.Cut(line, ":")
		switch {
		case !ok:
		case name == "" && strings.EqualFold(key, "Name"):
			name = strings.TrimSpace(value)
		case version == "" && strings.EqualFold(key, "Version"):
			version = strings.TrimSpace(value)
		}
	}
	return name, version
}
