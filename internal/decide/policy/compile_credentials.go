package policy

import (
	"net/textproto"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"
)

// maxInjections bounds how many credentials a document has.
const maxInjections = 100

// maxVariables bounds in how many variables one placeholder is.
const maxVariables = 10

func compileCredentials(c *compiler, v value) {
	o := c.object(v, keysOf[credentialsKeys]()...)
	if o == nil {
		return
	}
	if f, given := o.fields["mode"]; given {
		if _, ok := c.readWord(f, "just_in_time"); ok {
			c.explainEnforced(f, "a secret is fetched before a run's first request that is read, and is forgotten at its end")
		}
	}
	if f, given := o.fields["inject"]; given {
		elements, _ := c.readList(f)
		if len(elements) > maxInjections {
			c.failAt(f.node, "%s has %d entries, and at most %d are read", f.path, len(elements), maxInjections)
			return
		}
		i := injections{compiler: c}
		for _, e := range elements {
			i.injection(e)
		}
		c.injections = &i
	}
	if f, given := o.fields["secret_scanning"]; given {
		compileScanning(c, f)
	}
}

// injections reads the entries of credentials.inject.
type injections struct {
	*compiler
	at []value // where each of the policy's credentials is
}

func (c *injections) injection(v value) {
	o := c.object(v, keysOf[injectKeys]()...)
	if o == nil {
		return
	}
	before := len(c.problems)
	for _, key := range []string{"host", "secret"} {
		if _, given := o.fields[key]; !given {
			c.failAt(v.node, "%s needs host and secret; %s is missing", v.path, key)
		}
	}
	var cred Credential
	if f, given := o.fields["host"]; given {
		c.addHost(f, &cred)
	}
	if f, given := o.fields["secret"]; given {
		cred.Secret = c.readToken(f)
	}
	if f, given := o.fields["header"]; given {
		cred.Header = textproto.CanonicalMIMEHeaderKey(c.readToken(f))
	}
	if f, given := o.fields["git"]; given {
		word, _ := c.readWord(f, string(gitwire.Fetch), string(gitwire.Push))
		cred.Git = gitwire.Operation(word)
	}
	if f, given := o.fields["own_credentials"]; given {
		word, ok := c.readWord(f, "refuse", "allow")
		if cred.Own = word == "allow"; ok && cred.Own {
			c.explainEnforced(f, "requests to %s may have other credentials beside the secret, so the sandbox can use it for another account", cred.Host)
		}
	}
	if f, given := o.fields["env"]; given {
		cred.Env = c.variables(f)
	}
	if len(c.problems) > before || c.disagrees(v, cred) {
		return
	}
	c.policy.credentials = append(c.policy.credentials, cred)
	c.at = append(c.at, v)
}

func (c *injections) addHost(f value, cred *Credential) {
	s, ok := c.readText(f)
	if !ok {
		return
	}
	pattern, wrong := parseNetworkPattern(s)
	if wrong == "" && pattern.Wildcard {
		wrong = "is a wildcard; a secret goes to hosts that are named"
	}
	if wrong != "" {
		c.failAt(f.node, "%s: %q %s", f.path, plainASCII(s, 60), wrong)
		return
	}
	cred.Host, cred.Port = pattern.Host, pattern.Port
}

// disagrees refuses a credential that can't be beside another.
func (c *injections) disagrees(v value, cred Credential) bool {
	for i, other := range c.policy.credentials {
		line := c.at[i].node.Line
		shared := slices.IndexFunc(cred.Env, func(name string) bool { return slices.Contains(other.Env, name) })
		switch {
		case shared >= 0 && other.Secret != cred.Secret:
			c.failAt(v.node, "%s: the variable %s is another secret's on line %d", v.path, cred.Env[shared], line)
		case other.Secret == cred.Secret && other.Host == cred.Host && (other.Port == cred.Port || other.Port == 0 || cred.Port == 0):
			c.failAt(v.node, "%s: %s gets the secret %s on line %d", v.path, cred.Host, cred.Secret, line)
		default:
			continue
		}
		return true
	}
	return false
}

// reportUnused says which of them have no effect, now that it is known which hosts
// can be reached.
func (c *injections) reportUnused() {
	for i, cred := range c.policy.credentials {
		ports := c.policy.network.portsOf(cred.Host)
		if len(ports) == 0 || cred.Port != 0 && !slices.Contains(ports, cred.Port) {
			c.explainOpen(c.at[i], "%s is not on network_allowlist, so nothing is sent there, with the secret %s or without", cred.Host, cred.Secret)
			continue
		}
		for _, port := range ports {
			switch {
			case !slices.ContainsFunc(c.policy.network.deciding(cred.Host, port), func(e hostEntry) bool { return e.tcp }):
			case cred.isForHost(cred.Host, port):
				c.failAt(c.at[i].node, "%s: network_allowlist has %s with tcp: true on port %d, and nothing can be put into what nobody reads", c.at[i].path, cred.Host, port)
			default:
				c.explainOpen(c.at[i], "%s passes unread on port %d (tcp: true), so nobody looks there for the secret %s in what it answers", cred.Host, port, cred.Secret)
			}
		}
		what := "requests"
		if cred.Git != "" {
			what = "git's requests to " + string(cred.Git)
		}
		holds := "the sandbox has no variable with its placeholder"
		if len(cred.Env) > 0 {
			holds = "the sandbox has its placeholder in " + strings.Join(cred.Env, " and ")
		}
		c.explainEnforced(c.at[i], "%s to %s over TLS get the secret %s, as the daemon's configuration declares it, and plain HTTP to it is refused; %s", what, cred.Host, cred.Secret, holds)
	}
}

func (c *injections) readToken(v value) string {
	s, ok := c.readText(v)
	if ok && !isToken(s) {
		c.failAt(v.node, "%s: %q may have letters, digits, - and _ only", v.path, plainASCII(s, 60))
	}
	return s
}

func isToken(s string) bool {
	return len(s) <= 128 && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// variables reads the name of a variable, or a list of them.
func (c *injections) variables(v value) []string {
	if v.node.Kind != yaml.SequenceNode {
		return []string{c.variable(v)}
	}
	elements, _ := c.readList(v)
	if len(elements) == 0 || len(elements) > maxVariables {
		c.failAt(v.node, "%s must have 1 to %d variables", v.path, maxVariables)
		return nil
	}
	var names []string
	for _, e := range elements {
		names = append(names, c.variable(e))
	}
	return names
}

// variable reads a variable's name.
func (c *injections) variable(v value) string {
	s, ok := c.readText(v)
	if ok && (!isToken(s) || strings.Contains(s, "-") || '0' <= s[0] && s[0] <= '9') {
		c.failAt(v.node, "%s: %q is no variable's name: letters, digits and _, and no digit first", v.path, plainASCII(s, 60))
	}
	return s
}
