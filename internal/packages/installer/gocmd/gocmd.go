// Package gocmd is the go command, as an installer of modules.
package gocmd

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

// The names of what comes out of a sandbox.
const (
	sumFile      = "go.sum"
	sumBefore    = "go.sum.before" // the project's own, before
	downloadFile = "download.json" // of go mod download -json
)

type client struct{}

// New returns the installer.
func New() installer.Installer { return client{} }

func (client) Name() string                { return "go" }
func (client) Ecosystem() pkgref.Ecosystem { return pkgref.Go }
func (client) Plannable() []string {
	return []string{"go get", "go mod download", "go install"}
}

// Asks implements installer.Installer.
func (client) Asks(argv []string) ([]string, bool) {
	if installer.Program(argv) != "go" {
		return nil, false
	}
	return installer.Behind(argv[1:], "get", "install", "run")
}

func (client) Settings(installer.Surroundings) map[string]string {
	return map[string]string{
		"GOTOOLCHAIN": "local", // go itself then says which it would need
		"GOVCS":       "*:off",
	}
}

// Mirror names the proxy alone: go's own default would go on to the modules'
// repositories, which no sandbox reaches, and hide why the proxy refused.
func (client) Mirror(r installer.Registry) map[string]string {
	env := map[string]string{
		"GOPROXY": strings.TrimSuffix(r.Index, "/"),
		// Over what the user's go/env may say: all names go one way, and all are
		// looked up in the checksum database.
		"GONOPROXY": "none", "GONOSUMDB": "none",
	}
	switch {
	case r.Log == "":
		env["GOSUMDB"] = "off" // there is none to ask
	case strings.Contains(r.Log, "+"):
		env["GOSUMDB"] = r.Log
	}
	return env
}

// Unbuilt implements installer.Installer: go runs nothing of what it fetches.
func (client) Unbuilt() map[string]string { return nil }

// Install implements installer.Installer; outside of a module go wants a version.
func (client) Install(wanted []installer.Wanted) []string {
	argv := []string{"go", "install"}
	for _, w := range wanted {
		word := w.Word("@")
		if !strings.Contains(word, "@") {
			word += "@latest"
		}
		argv = append(argv, word)
	}
	return argv
}

// Rewrite implements installer.Installer.
func (client) Rewrite(argv []string, p installer.Project) (installer.Rewrite, bool, error) {
	if installer.Program(argv) != "go" || len(argv) < 2 {
		return installer.Rewrite{}, false, nil
	}
	word, words := argv[1], argv[2:]
	switch {
	case word == "get":
		return rewriteGet(words, p)
	case word == "install":
		return goInstall(words, p)
	case word == "mod" && len(words) > 0 && words[0] == "download":
		return goModDownload(words[1:], p)
	}
	return installer.Rewrite{}, false, nil
}

// sumsResolver reads the go.sum that a command leaves.
func sumsResolver() installer.Resolver {
	return installer.Resolver{
		Name: "go get", Ecosystem: pkgref.Go, Documents: []string{sumFile, sumBefore},
		Read: readGoSum, LockName: sumFile,
	}
}

// downloads reads what `go mod download` says that it fetched.
func downloads() installer.Resolver {
	return installer.Resolver{
		Name: "go mod download", Ecosystem: pkgref.Go, Documents: []string{sumFile, sumBefore, downloadFile},
		Read: installer.Only(downloadFile, readDownloads), LockName: sumFile,
		Lock: func(docs installer.Documents, _ installer.Result) ([]byte, error) { return downloadSums(docs) },
	}
}

// ReadsUnasked implements installer.ProjectReader.
func (client) ReadsUnasked([]string) []string { return []string{"go.mod", "go.work"} }
