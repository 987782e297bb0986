package policy

import (
	"slices"

	"go.yaml.in/yaml/v4"
)

// hostReader reads entries of a list of names.
type hostReader struct{ c *compiler }

// readEntry reads an entry of a list of names: a name alone, or an object that says more
// of it.
func (r hostReader) readEntry(v value) (entry hostEntry, ok bool) {
	entry.line = v.node.Line
	if v.node.Kind != yaml.MappingNode {
		entry.NetworkPattern, ok = r.readName(v)
		return entry, ok
	}
	o := r.c.object(v, keysOf[hostKeys]()...)
	f, given := o.fields["host"]
	if !given {
		r.c.failAt(v.node, "%s needs a host", v.path)
		return entry, false
	}
	if entry.NetworkPattern, ok = r.readName(f); !ok {
		return entry, false
	}
	if entry.Port != 0 {
		r.c.failAt(f.node, "%s: %q has a port, which stands under the key port here", f.path, plainASCII(f.node.Value, 60))
		return entry, false
	}
	if f, given := o.fields["port"]; given {
		port, ok := r.c.integer(f, 1, maxPort)
		if !ok {
			return entry, false
		}
		entry.Port = int(port)
	}
	if !r.readTCP(&entry, o) {
		return entry, false
	}
	return entry, requestReader(r).readRules(&entry, o)
}

// readName reads a name, with a port perhaps.
func (r hostReader) readName(v value) (NetworkPattern, bool) {
	s, ok := r.c.readText(v)
	if !ok {
		return NetworkPattern{}, false
	}
	pattern, wrong := parseNetworkPattern(s)
	if wrong != "" {
		r.c.failAt(v.node, "%s: %q %s", v.path, plainASCII(s, 60), wrong)
		return NetworkPattern{}, false
	}
	return pattern, true
}

// readTCP reads whether other protocols than TLS and HTTP pass.
func (r hostReader) readTCP(entry *hostEntry, o *object) bool {
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
		r.c.failAt(f.node, "%s needs a port beside it: what passes unread passes on that one alone", f.path)
		return false
	case slices.Contains(NetworkPattern{}.portsOf(), entry.Port):
		r.c.failAt(f.node, "%s can't be true on port %d, where TLS and HTTP say which host is meant", f.path, entry.Port)
		return false
	default:
		r.c.explainEnforced(f, "every protocol passes on port %d of %s, unread: who answers there is known by its addresses alone", entry.Port, plainASCII(NetworkPattern{Host: entry.Host, Wildcard: entry.Wildcard}.String(), 60))
	}
	return true
}
