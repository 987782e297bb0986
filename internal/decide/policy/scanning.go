package policy

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
)

// Scanning is what becomes of secrets and personal data that are found in what goes out of
// a sandbox, by the way that it takes.
type Scanning struct {
	Output   dlp.Plan // what commands write, to whoever reads it
	Files    dlp.Plan // files that clients read
	Requests dlp.Plan // what is sent to hosts, as far as it can be read, and asked of registries
}

// ScanningOf is what a document has done, or a stricter one of those that narrow it. Of one
// that only observes all is reported, and nothing redacted or blocked.
func ScanningOf(p *Policy) Scanning {
	return scanningOf(p, func(l *Policy, s dlp.Plan) dlp.Plan {
		if l.observes {
			return s.AtMost(dlp.Report)
		}
		return s
	})
}

// ScanningMeant is what would be done if no document only observed.
func ScanningMeant(p *Policy) Scanning {
	return scanningOf(p, func(_ *Policy, s dlp.Plan) dlp.Plan { return s })
}

func scanningOf(p *Policy, by func(*Policy, dlp.Plan) dlp.Plan) Scanning {
	var s Scanning
	for _, l := range p.layers() {
		s.Output = s.Output.Stricter(by(l, l.scanning.Output))
		s.Files = s.Files.Stricter(by(l, l.scanning.Files))
		s.Requests = s.Requests.Stricter(by(l, l.scanning.Requests))
	}
	return s
}

// compileScanning reads credentials.secret_scanning: a mapping of places, or true for what
// is meant where nobody says more.
func compileScanning(c *compiler, v value) {
	if v.node.Kind == yaml.ScalarNode {
		on, ok := c.boolean(v)
		switch {
		case ok && on:
			c.policy.scanning = Scanning{Output: dlp.Plan{Secrets: dlp.Redact}, Files: dlp.Plan{Secrets: dlp.Report}, Requests: dlp.Plan{Secrets: dlp.Report}}
			c.explainEnforced(v, "secrets in what commands write are redacted, and those in files that clients read and in requests to hosts are on record")
			c.scansRequests = &v
		case ok:
			c.explainEnforced(v, "what leaves the sandbox is not scanned for secrets")
		}
		return
	}
	o := c.object(v, keysOf[scanningKeys]()...)
	if o == nil {
		return
	}
	s := &c.policy.scanning
	s.Output.Secrets = c.scanned(o, "output", "in what commands write")
	s.Files.Secrets = c.scanned(o, "files", "in files that clients read")
	s.Requests.Secrets = c.scanned(o, "requests", "in requests to hosts")
	personal := c.scanned(o, "pii", "among personal data (addresses of mail, numbers of cards, accounts and phones), where secrets are looked for,")
	places := []*dlp.Plan{&s.Output, &s.Files, &s.Requests}
	nowhere := !slices.ContainsFunc(places, func(p *dlp.Plan) bool { return p.Secrets != dlp.Off })
	if f, given := o.fields["pii"]; given && personal != dlp.Off && nowhere {
		c.failAt(f.node, "%s is %s, and nothing is scanned: give output, files or requests, too", f.path, personal)
	}
	for _, place := range places {
		if place.Secrets != dlp.Off {
			place.Personal = personal
		}
	}
	if f, given := o.fields["requests"]; given && s.Requests.Secrets != dlp.Off {
		c.scansRequests = &f
	}
}

// scanned reads the word of one place.
func (c *compiler) scanned(o *object, key, what string) dlp.Outcome {
	f, given := o.fields[key]
	if !given {
		return dlp.Off
	}
	word, ok := c.readWord(f, dlp.Words()...)
	if !ok {
		return dlp.Off
	}
	for outcome, known := range dlp.Words() {
		if word != known {
			continue
		}
		switch o := dlp.Outcome(outcome); o {
		case dlp.Off:
			c.explainEnforced(f, "nothing is looked for %s", what)
		case dlp.Report:
			c.explainEnforced(f, "what is found %s goes out, and is on record", what)
		case dlp.Redact:
			c.explainEnforced(f, "what is found %s is replaced by asterisks, and is on record", what)
		case dlp.Block:
			c.explainEnforced(f, "what is found %s does not go out, nor does what comes after it, and is on record", what)
		}
		return dlp.Outcome(outcome)
	}
	return dlp.Off
}

// maxUnseen is how many hosts are named that can't be looked into.
const maxUnseen = 5

// unseen says which hosts' requests are not scanned although a document asks for that.
type unseen struct{ *compiler }

// reportUnseen looks, now that it is known which hosts there are, and whose TLS is ended.
func (c unseen) reportUnseen() {
	if c.scansRequests == nil {
		return
	}
	var names []string
	for _, entry := range c.policy.network {
		if name := entry.String(); c.passes(entry) && !slices.Contains(names, name) {
			names = append(names, plainASCII(name, 60))
		}
	}
	if c.policy.unlisted == Hold {
		names = append(names, "hosts that a person opens")
	}
	if len(names) == 0 {
		return
	}
	if more := len(names) - maxUnseen; more > 0 {
		names = append(names[:maxUnseen], counted(more, "more host"))
	}
	c.explainOpen(*c.scansRequests, "what is sent by TLS to %s is not seen, so it passes and is not scanned; with methods, paths or a credential for a host its TLS is ended", strings.Join(names, ", "))
}

// passes tells whether a connection by an entry is not read: all but plain HTTP.
func (c unseen) passes(entry hostEntry) bool {
	return slices.ContainsFunc(entry.portsOf(), func(port int) bool {
		if port == 80 || entry.judged() {
			return false
		}
		return entry.Wildcard || !c.policy.Requests().Judged(entry.Host, port)
	})
}
