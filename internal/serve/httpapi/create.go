package httpapi

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// Bounds of what makes a sandbox.
const (
	maxLabels     = 64
	maxLabelName  = 128
	maxLabelValue = 1 << 10
	maxLife       = 366 * 24 * time.Hour
	maxName       = 128
)

// checkCreate refuses what nobody may ask for, and what a token may not. The rest
// (mounts of the host's own files, engines, limits) is the manager's.
func checkCreate(body api.CreateSandbox, who caller) error {
	if who.token != nil && len(body.Mounts) > 0 {
		return fault.New(fault.ErrForbidden, "a mount names a path of the daemon's host, so only callers on its Unix socket may ask for one; upload the files instead")
	}
	if who.token != nil && body.Home != nil {
		return fault.New(fault.ErrForbidden, "a home is a user's of the daemon's host, so only callers on its Unix socket may ask for one")
	}
	if !who.seesAll() && (body.Template == template.NameHost || body.Template == template.NameAuto) {
		return fault.New(fault.ErrForbidden, "the template %s shows, or may show, the programs of the daemon's host, so a token may not ask for it", body.Template)
	}
	for what, name := range map[string]string{"template": body.Template, "isolation": body.Isolation, "engine": body.Engine, "snapshot": body.Snapshot} {
		if name != "" && !plainName(name) {
			return fault.Invalid("the %s %.60q is no name: up to %d letters, digits, dots, dashes and underscores, starting with a letter or digit", what, name, maxName)
		}
	}
	if body.Isolation != "" && body.Engine != "" {
		return fault.Invalid("isolation and engine are two words for one thing; give isolation alone")
	}
	if body.Snapshot != "" && (body.Template != "" || body.Isolation+body.Engine != "" || len(body.Mounts) > 0) {
		return fault.Invalid("a sandbox that is made from a snapshot has the snapshot's template, engine and mounts; name none")
	}
	for name := range body.Env {
		if strings.ContainsFunc(name, unicode.IsControl) {
			return fault.Invalid("the environment variable %.60q has a control character in its name", name)
		}
	}
	return checkLabels(body.Labels)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func plainName(name string) bool {
	return len(name) <= maxName && plainWord.MatchString(name)
}

var labelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)

func checkLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return fault.Invalid("%d labels; a sandbox has at most %d", len(labels), maxLabels)
	}
	for name, value := range labels {
		switch {
		case !labelName.MatchString(name) || len(name) > maxLabelName:
			return fault.Invalid("the label %.60q is no name: up to %d letters, digits, dots, dashes, slashes and underscores, starting with a letter or digit", name, maxLabelName)
		case strings.HasPrefix(name, backend.OwnLabels):
			return fault.Invalid("the label %q is the daemon's own, as all are that begin with %s", name, backend.OwnLabels)
		case len(value) > maxLabelValue:
			return fault.Invalid("the label %q has %d bytes; it may have %d", name, len(value), maxLabelValue)
		case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
			return fault.Invalid("the value of the label %q has characters that are no text", name)
		}
	}
	return nil
}

func lifetime(l api.Lifetime) (sandbox.Lifetime, error) {
	for what, seconds := range map[string]int64{"ttl_seconds": l.TTLSeconds, "idle_seconds": l.IdleSeconds} {
		if seconds < 0 || seconds > int64(maxLife/time.Second) {
			return sandbox.Lifetime{}, fault.Invalid("%s is %d; it is from 1 to %d, or 0 for no end", what, seconds, int64(maxLife/time.Second))
		}
	}
	if l.LeaseSeconds < -1 || l.LeaseSeconds > int64(maxLife/time.Second) {
		return sandbox.Lifetime{}, fault.Invalid("lease_seconds is %d; it is from 5 to %d, 0 for the one that there is, or -1 for none", l.LeaseSeconds, int64(maxLife/time.Second))
	}
	made := sandbox.Lifetime{
		TTL: time.Duration(l.TTLSeconds) * time.Second, Idle: time.Duration(l.IdleSeconds) * time.Second, Lease: time.Duration(l.LeaseSeconds) * time.Second,
	}
	if l.LeaseSeconds < 0 {
		made.Lease = sandbox.NoLease
	}
	switch l.AtEnd {
	case "", "destroy":
	case "pause":
		made.Then = sandbox.ThenPause
	case "pause-files":
		made.Then = sandbox.ThenPauseFiles
	default:
		return sandbox.Lifetime{}, fault.Invalid("at_end is %.40q; it is destroy, pause or pause-files", l.AtEnd)
	}
	return made, nil
}

func viewLifetime(l sandbox.Lifetime) api.Lifetime {
	seconds := func(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
	return api.Lifetime{TTLSeconds: seconds(l.TTL), IdleSeconds: seconds(l.Idle), AtEnd: string(l.Then), LeaseSeconds: seconds(l.Lease)}
}

// chosenPolicy is the policy of a new sandbox.
type chosenPolicy struct {
	policy *policy.Policy
	source string // on the host; "": it is no file of a person's
	text   []byte
	from   []string // the host's files of which the text was made
}

// inherits tells whether a sandbox has the policy and the lockfiles of the snapshot
// that it is made from: where the host asks for no others. A token's are the ones
// that it may use today.
func inherits(body api.CreateSandbox, who caller) bool {
	asked := body.Policy
	return body.Snapshot != "" && who.seesAll() && asked.Name == "" && asked.Source == "" && len(asked.Document) == 0 && len(body.Lockfiles) == 0
}

// policyFor finds the policy that a request asks for. A token has the named ones
// that it was given, and brings none of its own: it would write its own permission.
func (s sandboxRoutes) policyFor(ctx context.Context, asked api.Policy, who caller) (chosenPolicy, error) {
	own := len(asked.Document) > 0 || asked.Source != "" || len(asked.MadeFrom) > 0
	switch {
	case own && asked.Name != "":
		return chosenPolicy{}, fault.Invalid("name a policy or give a document, not both")
	case own && !who.seesAll():
		return chosenPolicy{}, fault.New(fault.ErrForbidden, "a token brings no policy of its own; name one of those that it may choose: %s", strings.Join(who.token.Choices(), ", "))
	case own:
		p, err := policy.Parse(orName(asked.Source, "the given policy"), asked.Document)
		if err == nil {
			err = errors.Join(mayMount(p, who), s.checkSeen(ctx, who, "policy", asked.Source, asked.Document))
		}
		from, unseen := s.madeFrom(ctx, who, asked.MadeFrom)
		return chosenPolicy{policy: p, source: asked.Source, text: asked.Document, from: from}, errors.Join(err, unseen)
	}
	name := asked.Name
	if name == "" && who.token != nil {
		name = who.token.Policy
	}
	if name == "" {
		p, err := policy.Parse("the built-in policy", []byte(DefaultPolicy))
		return chosenPolicy{policy: p, text: []byte(DefaultPolicy)}, err
	}
	if s.cfg.Policies == nil {
		return chosenPolicy{}, errNotWired
	}
	var named *namedpolicy.Named
	var err error
	if who.seesAll() {
		named, err = s.cfg.Policies.Get(name)
	} else {
		named, err = backend.TokenPolicy(s.cfg.Policies, *who.token, name)
	}
	if err != nil {
		return chosenPolicy{}, err
	}
	return chosenPolicy{policy: named.Policy, source: named.Path, text: named.Text}, nil
}

// mostMadeFrom is how many files a policy may have been made of.
const mostMadeFrom = 16

// madeFrom are the files of which a policy was made, each of which somebody has seen as it was read.
func (d *desk) madeFrom(ctx context.Context, who caller, files []api.DecidingFile) ([]string, error) {
	if len(files) > mostMadeFrom {
		return nil, fault.Invalid("a policy can be made from %d files at most, and made_from has %d", mostMadeFrom, len(files))
	}
	var names []string
	for _, f := range files {
		if !filepath.IsAbs(f.Source) {
			return nil, fault.Invalid("the file %.200q in made_from must be named by its absolute path", f.Source)
		}
		if err := d.checkSeen(ctx, who, "policy", f.Source, f.Document); err != nil {
			return nil, err
		}
		names = append(names, filepath.Clean(f.Source))
	}
	return names, nil
}

// checkSeen refuses a document of the host's that an agent could have written and nobody has seen. Of a token's
// sources nothing is known.
func (d *desk) checkSeen(ctx context.Context, who caller, what, source string, document []byte) error {
	if d.cfg.Seen == nil || who.token != nil || !filepath.IsAbs(source) {
		return nil
	}
	return d.cfg.Seen(ctx, what, source, document)
}

// mayMount refuses a document of a token's that mounts: it would reach the host's
// files by its policy where it may not by its request.
func mayMount(p *policy.Policy, who caller) error {
	mounts := p.Mounts()
	if who.token == nil || len(mounts) == 0 {
		return nil
	}
	return fault.New(fault.ErrForbidden, "the policy mounts %.200s, a path of the daemon's host, so only callers on its Unix socket may bring it", mounts[0].Source)
}

func orName(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}
