package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
)

// Audit is how the log is kept.
type Audit struct {
	// KeyFile is the private key that signs checkpoints; empty: "audit.key" in the
	// state directory.
	KeyFile string `yaml:"key_file"`
	// Publish hands checkpoints out; nothing is handed out if no place is named.
	Publish Publish `yaml:"publish"`
}

// Publish names the places that checkpoints go to; any of them.
type Publish struct {
	File    string   `yaml:"file"`    // an absolute path; appended to
	Command []string `yaml:"command"` // a program's absolute path and its arguments; no shell
	URL     string   `yaml:"url"`     // http or https; POST
	// Every is the least time between two; a minute if it is not set.
	Every Duration `yaml:"every"`
}

// Wanted reports whether any place is named.
func (p Publish) Wanted() bool { return p.File != "" || len(p.Command) > 0 || p.URL != "" }

func (a Audit) checkKeys() error {
	p := a.Publish
	if a.KeyFile != "" && !filepath.IsAbs(a.KeyFile) {
		return fmt.Errorf(".key_file is %q; it must be an absolute path", a.KeyFile)
	}
	if p.File != "" && !filepath.IsAbs(p.File) {
		return fmt.Errorf(".publish.file is %q; it must be an absolute path", p.File)
	}
	if len(p.Command) > 0 && !filepath.IsAbs(p.Command[0]) {
		return fmt.Errorf(".publish.command begins with %q; it is a program's absolute path", p.Command[0])
	}
	if p.URL != "" {
		u, err := url.Parse(p.URL)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return errors.New(".publish.url is no http or https URL")
		}
	}
	if p.Every != 0 && !p.Wanted() {
		return errors.New(".publish.every is set, and no file, command or url")
	}
	return nil
}

// AuditKey is the private key of the log, unless the configuration names another
// place.
func (p Paths) AuditKey() string { return filepath.Join(p.State, "audit.key") }
