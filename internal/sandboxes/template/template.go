// Package template makes root filesystems for sandboxes and keeps them.
package template

import (
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// Template is one read-only root filesystem with a digest, ready to use.
type Template struct {
	Name    string            `json:"name"`
	Digest  string            `json:"digest"` // "sha256:<hex>" over the image, or over what a host template shows
	Root    engine.Root       `json:"root"`
	Mounts  []engine.Mount    `json:"mounts,omitempty"` // read-only, of the host template
	Env     map[string]string `json:"env"`              // PATH, LANG, VIRTUAL_ENV, ...
	User    string            `json:"user"`             // the default user's name
	Home    string            `json:"home"`
	Roots   string            `json:"roots"`            // path inside of the system's CA bundle
	Recipe  string            `json:"recipe,omitempty"` // what it was built by; see Store.Outdated
	Created time.Time         `json:"created"`
	Bytes   int64             `json:"bytes"`
}

// Progress is one step of a build.
type Progress struct {
	Step    string `json:"step"`
	Detail  string `json:"detail,omitempty"`
	Percent int    `json:"percent,omitempty"` // 0: unknown
}
