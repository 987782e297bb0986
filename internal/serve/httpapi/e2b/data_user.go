package e2b

import (
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// The users that clients may name. The default one is the sandbox's own.
const (
	defaultUser = "user"
	rootUser    = "root"
)

// basicUser is who the request wants to be: the name in Authorization: Basic, whose
// password means nothing. "" is the default user.
func (c *call) basicUser() (string, error) {
	name, _, given := c.BasicAuth()
	if !given {
		return "", nil
	}
	return userOf(c.box.Info().Account, name)
}

// queryUser returns the user of an HTTP route. A caller with no more than a signed URL is the user
// that was signed, and not one of its own choice.
func (c *call) queryUser() (string, error) {
	if name := c.URL.Query().Get("username"); name != "" {
		return userOf(c.box.Info().Account, name)
	}
	if c.Header.Get(headerAccess) == "" {
		return "", nil
	}
	return c.basicUser()
}

// userOf maps a name to what the manager takes; "" is the default user, who is root
// where a template says so.
func userOf(a sandbox.Account, name string) (string, error) {
	own := a.Name
	if own == "" {
		own = defaultUser
	}
	switch name {
	case own:
		if a.Default != "" {
			return own, nil
		}
		return "", nil
	case "":
		return "", nil
	case rootUser:
		return rootUser, nil
	}
	return "", refuseWith(codeUnauthenticated, "the sandbox has no user %q: there are %s and %s", text.Shorten(name, 40), own, rootUser)
}
