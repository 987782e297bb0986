package policy

import (
	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/scan"
)

// Scanning is what becomes of secrets and personal data that are found in what goes out of
// a sandbox, by the way that it takes.
type Scanning struct {
	Output scan.Plan // what commands write, to whoever reads it
	Files  scan.Plan // files that clients read
}

// ScanningOf is what a document asks for, or a stricter one of those that narrow it.
func ScanningOf(p *Policy) Scanning {
	var s Scanning
	for _, l := range p.layers() {
		s.Output = s.Output.Stricter(l.scanning.Output)
		s.Files = s.Files.Stricter(l.scanning.Files)
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
			c.policy.scanning = Scanning{Output: scan.Plan{Secrets: scan.Redact}, Files: scan.Plan{Secrets: scan.Report}}
			c.says(v, "secrets in what commands write are redacted, and those in files that clients read are on record")
		case ok:
			c.says(v, "what leaves the sandbox is not scanned for secrets")
		}
		return
	}
	o := c.object(v, keysOf[scanningKeys]()...)
	if o == nil {
		return
	}
	if f, given := o.fields["requests"]; given {
		if s, ok := c.word(f, scan.Words()...); ok && s != scan.Off.String() {
			c.fail(f.node, "%s can only be off: the bodies of requests are not scanned yet", f.path)
		}
	}
	s := &c.policy.scanning
	s.Output.Secrets = c.scanned(o, "output", "in what commands write")
	s.Files.Secrets = c.scanned(o, "files", "in files that clients read")
	personal := c.scanned(o, "pii", "among personal data (addresses of mail, numbers of cards, accounts and phones), where secrets are looked for,")
	if f, given := o.fields["pii"]; given && personal != scan.Off && s.Output.Secrets == scan.Off && s.Files.Secrets == scan.Off {
		c.fail(f.node, "%s is %s, and nothing is scanned: give output or files, too", f.path, personal)
	}
	for _, place := range []*scan.Plan{&s.Output, &s.Files} {
		if place.Secrets != scan.Off {
			place.Personal = personal
		}
	}
}

// scanned reads the word of one place.
func (c *compiler) scanned(o *object, key, what string) scan.Outcome {
	f, given := o.fields[key]
	if !given {
		return scan.Off
	}
	word, ok := c.word(f, scan.Words()...)
	if !ok {
		return scan.Off
	}
	for outcome, known := range scan.Words() {
		if word != known {
			continue
		}
		switch o := scan.Outcome(outcome); o {
		case scan.Off:
			c.says(f, "nothing is looked for %s", what)
		case scan.Report:
			c.says(f, "what is found %s goes out, and is on record", what)
		case scan.Redact:
			c.says(f, "what is found %s is replaced by asterisks, and is on record", what)
		case scan.Block:
			c.says(f, "what is found %s does not go out, nor does what comes after it, and is on record", what)
		}
		return scan.Outcome(outcome)
	}
	return scan.Off
}
