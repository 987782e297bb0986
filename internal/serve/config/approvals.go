package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/privatefile"
)

// Approvals are settings of the approval queue.
type Approvals struct {
	// PendingExpires is how long a request waits for an answer; 7d.
	PendingExpires Span `yaml:"pending_expires"`
	// AfterRun is how long after the last run that asked a request waits on that nobody
	// has looked at; 1d.
	AfterRun Span `yaml:"after_run"`
	// URL is the address of a page on which a person answers a request, with {request} where
	// its id goes; agents that speak MCP are given it. Empty: they are given the command.
	URL string `yaml:"url"`
	// Webhooks are told what happens in the queue.
	Webhooks []Webhook `yaml:"webhooks"`
}

func (a Approvals) checkKeys() error {
	if err := CheckApprovalURL(a.URL); err != nil {
		return fmt.Errorf("approvals.url%w", err)
	}
	return nil
}

// CheckApprovalURL refuses what is no address of a page for requests; "" is none.
func CheckApprovalURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(strings.ReplaceAll(text, "{request}", "ap-1"))
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" || !strings.Contains(text, "{request}") {
		return errors.New(" is no http or https address with {request} in it and without a user; write it as https://approvals.example/{request}") // not shown: it may hold a password
	}
	return nil
}

// Webhook is an address that is told. Package webhook says what can't be one.
type Webhook struct {
	URL string `yaml:"url"` // https, or http to this machine
	// SecretFile has the key of the signature: at least 16 bytes, readable by its
	// owner only. White space around it does not count.
	SecretFile string   `yaml:"secret_file"`
	Format     string   `yaml:"format"` // json (the default) or slack
	Events     []string `yaml:"events"` // none: all
}

// minSecret is the shortest key that can't be guessed, in bytes.
const minSecret = 16

// Secret reads the key; nil if there is none. One where a sandbox may write, or could, is refused.
func (w Webhook) Secret(trees []hostpath.Tree) ([]byte, error) {
	if w.SecretFile == "" {
		return nil, nil
	}
	if !filepath.IsAbs(w.SecretFile) {
		return nil, fmt.Errorf(".secret_file is %q; it must be an absolute path", w.SecretFile)
	}
	file, err := privatefile.ReadTrusted("the key of a webhook", w.SecretFile, 1<<16, trees)
	switch {
	case err != nil:
		return nil, fmt.Errorf(".secret_file: %w", err)
	case file.Mode&0o077 != 0:
		return nil, fmt.Errorf(".secret_file: %s can be read by others; chmod 600 it", w.SecretFile)
	}
	secret := strings.TrimSpace(string(file.Data))
	if len(secret) < minSecret {
		return nil, fmt.Errorf(".secret_file: %s has %d bytes; a key has at least %d", w.SecretFile, len(secret), minSecret)
	}
	return []byte(secret), nil
}

// Span is a time that people count in days: written as "7d", "12h" or "2w".
type Span time.Duration

// UnmarshalYAML parses the text form.
func (s *Span) UnmarshalYAML(n *yaml.Node) error {
	d, err := ParseSpan(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	*s = Span(d)
	return nil
}

// ParseSpan reads a whole number above 0 with one unit of s, m, h, d, w.
func ParseSpan(text string) (time.Duration, error) {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	if text != "" {
		unit := units[text[len(text)-1]]
		n, err := strconv.ParseUint(text[:len(text)-1], 10, 31)
		if err == nil && unit > 0 && n > 0 && n <= uint64(100*365*24*time.Hour/unit) {
			return time.Duration(n) * unit, nil
		}
	}
	return 0, fmt.Errorf("%.40q is not a time such as 12h, 7d or 2w", text)
}
