package policy

import (
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"
)

// Credential is a secret that the requests to a host get. The sandbox has a placeholder.
// How the secret is put into requests, and to which hosts it may go at all, is said by
// the daemon's configuration, which declares it.
type Credential struct {
	Host   string // canonical
	Port   int    // 0: each on which the host is listed
	Secret string // its name in the daemon's configuration
	Header string // canonical; what the configuration must have, "": whatever it has
	// Env are the sandbox's variables with the placeholder.
	Env []string
	// Git is the one operation of git's whose requests get it; "": all requests do.
	Git gitwire.Operation
	// Own lets requests have credentials of the sandbox's own beside it.
	Own bool
}

// givesSame tells whether it lets the same secret go to the same place as another one.
func (c Credential) givesSame(o Credential) bool {
	return c.Host == o.Host && c.Port == o.Port && c.Secret == o.Secret && c.Header == o.Header && c.Git == o.Git
}

// isForHost tells whether it is for a host on a port.
func (c Credential) isForHost(host string, port int) bool {
	return c.Host == host && (c.Port == 0 || c.Port == port)
}

// For tells whether it is for the requests of an operation of git's; "": they are of none.
func (c Credential) For(o gitwire.Operation) bool { return c.Git == "" || c.Git == o }

// Credentials are all that a policy has, and that all have by which it is narrowed.
func Credentials(p *Policy) []Credential {
	all := slices.Clone(p.credentials)
	for _, by := range p.narrowed {
		all = slices.DeleteFunc(all, func(c Credential) bool { return !slices.ContainsFunc(by.credentials, c.givesSame) })
		for i, c := range all {
			all[i].Own = c.Own && by.credentials[slices.IndexFunc(by.credentials, c.givesSame)].Own
		}
	}
	return all
}

// CredentialsAt are those of a host on a port.
func CredentialsAt(p *Policy, host string, port int) []Credential {
	return slices.DeleteFunc(Credentials(p), func(c Credential) bool {
		return !c.isForHost(host, port)
	})
}

// SecretsOf are all credentials that a policy or any that narrows it has, also those that a narrower
// one takes away or has for another port, header or operation: what was given once may be with its
// host, and a narrowing opens nothing. Which requests get one is Credentials' to say.
func SecretsOf(p *Policy) []Credential {
	var all []Credential
	for _, l := range p.layers() {
		all = append(all, l.credentials...)
	}
	return all
}

// SecretsOfHost are those of SecretsOf that are for a host, on whatever port.
func SecretsOfHost(p *Policy, host string) []Credential {
	return slices.DeleteFunc(SecretsOf(p), func(c Credential) bool { return c.Host != host })
}

// RefusesOwn tells whether requests to a host on a port may have no credential of the sandbox's own:
// a secret is for the host, be it on another port or by a policy that is narrowed, and
// one of the policies that have one for it does not allow it.
func RefusesOwn(p *Policy, host string, port int) bool {
	given := CredentialsAt(p, host, port)
	return len(given) > 0 && !slices.ContainsFunc(given, func(c Credential) bool { return c.Own }) ||
		slices.ContainsFunc(p.layers(), func(l *Policy) bool { return l.refusesOwn(host, port) })
}

// refusesOwn is RefusesOwn of a policy by itself. Those that it has for the port decide; if it has none
// there, all that it has for the host have to allow it.
func (p *Policy) refusesOwn(host string, port int) bool {
	var here, elsewhere []Credential
	for _, c := range p.credentials {
		switch {
		case c.isForHost(host, port):
			here = append(here, c)
		case c.Host == host:
			elsewhere = append(elsewhere, c)
		}
	}
	if len(here) > 0 {
		return !slices.ContainsFunc(here, func(c Credential) bool { return c.Own })
	}
	return slices.ContainsFunc(elsewhere, func(c Credential) bool { return !c.Own })
}
