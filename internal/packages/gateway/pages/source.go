package pages

import (
	"context"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// Source is an upstream whose pages are read.
type Source struct {
	Protocol ecosystem.Protocol
	Client   *upstream.Client
	Index    string // the index's URL, also the upstream's identity in cache keys
	Apart    string // with whom its pages are shared; "" is with all who may have them
	// Makes are the kinds of files that are made of published ones, in sandboxes of their
	// own, and offered in their place.
	Makes []policy.ArtifactKind
	// Times finds out when releases were published of which the index does not say
	// it, as far as it can; nil: nobody knows.
	Times func(ctx context.Context, project string, versions []string) map[string]time.Time
}

// Ecosystem is that of its protocol.
func (s Source) Ecosystem() pkgref.Ecosystem { return s.Protocol.Ecosystem() }

// Toolchain tells whether a project is one that tools fetch by themselves.
func (s Source) Toolchain(project string) bool {
	n, ok := s.Protocol.(ecosystem.ToolchainNamer)
	return ok && n.Toolchain(project)
}

// knownHosts are the file hosts that a page is read with.
func (s Source) knownHosts() string { return strings.Join(s.Client.FileHosts(), "\x00") }

// key names a project's page among those that are shared with the same.
type key struct{ index, project, apart string }

func pageKey(s Source, project string) key { return key{s.Index, project, s.Apart} }

// String has one text for each key: neither an index nor a project has a space.
func (k key) String() string { return k.index + " " + k.project + " " + k.apart }

func storeKey(s Source, project string) cache.PageKey {
	return cache.PageKey{Ecosystem: string(s.Ecosystem()), Upstream: s.Index, Project: strings.TrimSpace(project + " " + s.Apart)}
}
