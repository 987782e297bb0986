package npm

import (
	"bytes"
	"encoding/json"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/license"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/suspect"
)

// maxCodeFiles bounds the files that install scripts name and whose lines are looked at.
const maxCodeFiles = 16

// Starts implements ecosystem.Starter. Which other files run, a release's scripts say.
func (Protocol) Starts(name string) string {
	switch name {
	case "package.json", gypFile:
		return "it says what runs when it is installed"
	}
	return ""
}

// tellManifest adds what the package's own manifest says, for a person, and the lines to read of what
// runs when it is installed: of the scripts, and of the files that they name. It does not follow what
// those load in turn.
func (p *unpacking) tellManifest(content ecosystem.Content, found *ecosystem.Inspection) error {
	found.Said = present(p.packageJSON, p.licenses.Files)
	if len(found.Scripts) == 0 {
		return nil
	}
	var code suspect.Reader
	named := map[string]bool{}
	for _, script := range scriptsIn(p.packageJSON) {
		name, command, _ := strings.Cut(script, ": ")
		found.Inside.AddSuspect(code.Lines(name, []byte(command))...)
		files := p.filesOfCommand(command)
		if len(files) == maxCodeFiles {
			found.Inside.AddSuspect(name + " names more files than are looked at")
		}
		for _, f := range files {
			named[f] = true
		}
	}
	if p.gyp {
		named[gypFile] = true
	}
	if len(named) == 0 {
		return nil
	}
	return archive.TarGz(content, content.Size(), p.tarballLimits(), func(m archive.Member, content io.Reader) error {
		_, rest, _ := strings.Cut(m.Path, "/")
		if !named[rest] || !m.Mode.IsRegular() || m.Link != "" {
			return nil
		}
		delete(named, rest) // one that is there twice is the same, or the package is refused
		text, err := io.ReadAll(io.LimitReader(content, suspect.MaxText+1))
		found.Inside.AddSuspect(code.Lines(rest, text)...)
		return err
	})
}

// scriptsIn are those of a package.json that run, whole.
func scriptsIn(packageJSON []byte) []string {
	fields := manifestFields{}
	if json.Unmarshal(bytes.TrimPrefix(packageJSON, []byte("\xef\xbb\xbf")), &fields) != nil {
		return nil
	}
	return runsOf(fields)
}

// filesOfCommand are the package's files that a command names, as the shell and node find them.
func (p *unpacking) filesOfCommand(command string) (files []string) {
	words := strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t\n\"'`;&|()<>=,", r) })
	for _, word := range words {
		word = strings.TrimPrefix(path.Clean("/"+word), "/")
		for _, name := range []string{word, word + ".js", word + ".cjs", word + ".mjs", path.Join(word, "index.js")} {
			if p.paths[name] && len(files) < maxCodeFiles && !slices.Contains(files, name) {
				files = append(files, name)
			}
		}
	}
	return files
}

// licenseOf is the licence that a manifest names: in one of three forms, two of which are old.
func licenseOf(fields manifestFields, files []license.Text) string {
	claims := license.Claims{Expression: textOf(fields["license"], "type"), Files: files}
	if claims.Expression == "" {
		claims.Expression = strings.Join(typesOf(fields["licenses"]), " OR ")
	}
	return claims.String()
}
