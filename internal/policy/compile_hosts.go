package policy

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// hostReader reads entries of a list of names.
type hostReader struct{ c *compiler }

// entry reads an entry of a list of names: a name alone, or an object that says more
// of it.
func (r hostReader) entry(v value) (entry hostEntry, ok bool) {
	entry.line = v.node.Line
	if v.node.Kind != yaml.MappingNode {
		entry.NetworkPattern, ok = r.name(v)
		return entry, ok
	}
	o := r.c.object(v, keysOf[hostKeys]()...)
	f, given := o.fields["host"]
	if !given {
		r.c.fail(v.node, "%s needs a host", v.path)
		return entry, false
	}
	if entry.NetworkPattern, ok = r.name(f); !ok {
		return entry, false
	}
	if entry.Port != 0 {
		r.c.fail(f.node, "%s: %q has a port, which stands under the key port here", f.path, plain(f.node.Value, 60))
		return entry, false
	}
	if f, given := o.fields["port"]; given {
		port, ok := r.c.integer(f, 1, maxPort)
		if !ok {
			return entry, false
		}
		entry.Port = int(port)
	}
	if !r.tcp(&entry, o) {
		return entry, false
	}
	return entry, requestReader(r).read(&entry, o)
}

// name reads a name, with a port perhaps.
func (r hostReader) name(v value) (NetworkPattern, bool) {
	s, ok := r.c.text(v)
	if !ok {
		return NetworkPattern{}, false
	}
	pattern, wrong := parseNetworkPattern(s)
	if wrong != "" {
		r.c.fail(v.node, "%s: %q %s", v.path, plain(s, 60), wrong)
		return NetworkPattern{}, false
	}
	return pattern, true
}

// tcp reads whether other protocols than TLS and HTTP pass.
func (r hostReader) tcp(entry *hostEntry, o *object) bool {
	f, given := o.fields["tcp"]
	if !given {
		return true
	}
	var ok bool
	switch entry.tcp, ok = r.c.boolean(f); {
	case !ok:
		return false
	case !entry.tcp:
	case entry.Port == 0:
		r.c.fail(f.node, "%s needs a port beside it: what passes unread passes on that one alone", f.path)
		return false
	case slices.Contains(NetworkPattern{}.ports(), entry.Port):
		r.c.fail(f.node, "%s can't be true on port %d, where TLS and HTTP say which host is meant", f.path, entry.Port)
		return false
	default:
		r.c.says(f, "every protocol passes on port %d of %s, unread: who answers there is known by its addresses alone", entry.Port, plain(NetworkPattern{Host: entry.Host, Wildcard: entry.Wildcard}.String(), 60))
	}
	return true
}
