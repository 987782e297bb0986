package config

import (
	"reflect"
	"slices"
	"strings"
)

// Reloaded are the keys that a daemon takes from a configuration file that it reads again. A key
// stands for all below it.
func Reloaded() []string { return []string{"idle_timeout", "overcommit", "pool", "log.level"} }

// AtStart are the keys that count from the next start of a daemon; each key is in one of the two.
func AtStart() []string {
	return []string{
		"default_template", "gateway_uid", "runsc", "docker", "guest_kernel", "machine_monitor", "upstreams", "namespaces", "secrets",
		"network", "tools", "probe_projects", "audit", "approvals", "freeze", "snapshots", "processes", "images", "listen", "telemetry", "log.format",
	}
}

// Change is what differs between two configurations: the keys that a daemon takes when it is
// told to, and those that wait for its next start.
type Change struct{ Reloaded, AtStart []string }

// Take is a configuration with what Reloaded names of another, and what differs between the two. A key that is in
// neither list would wait.
func (c Config) Take(now Config) (Config, Change) {
	var changed Change
	taken := c
	eachKey(reflect.ValueOf(&taken).Elem(), reflect.ValueOf(now), "", func(key string, was, is reflect.Value) {
		switch {
		case reflect.DeepEqual(was.Interface(), is.Interface()):
		case slices.Contains(Reloaded(), key):
			was.Set(is)
			changed.Reloaded = append(changed.Reloaded, key)
		default:
			changed.AtStart = append(changed.AtStart, key)
		}
	})
	return taken, changed
}

// eachKey tells the keys of two configurations that the lists have, or would have: a map of keys is looked into if a
// list names one below it.
func eachKey(was, is reflect.Value, prefix string, tell func(key string, was, is reflect.Value)) {
	for f, v := range was.Fields() {
		key := prefix + f.Tag.Get("yaml")
		below := func(listed string) bool { return strings.HasPrefix(listed, key+".") }
		if slices.ContainsFunc(Reloaded(), below) || slices.ContainsFunc(AtStart(), below) {
			eachKey(v, is.FieldByIndex(f.Index), key+".", tell)
			continue
		}
		tell(key, v, is.FieldByIndex(f.Index))
	}
}
