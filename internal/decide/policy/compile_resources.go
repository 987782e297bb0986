package policy

import (
	"math"
	"time"
)

// The greatest limits that a document may ask for: more is a slip.
const (
	maxCores   = 1024
	maxMB      = 16 << 20 // 16 TiB
	maxPids    = 4 << 20
	maxSeconds = 30 * 24 * 3600
)

func (c *compiler) defaults(v value) {
	o := c.object(v, keysOf[defaultsKeys]()...)
	if o == nil {
		return
	}
	if f, given := o.fields["action"]; given {
		c.defaultAction(f)
	}
	if f, given := o.fields["network_default"]; given && c.claimThing("network_default", f) {
		c.networkDefault(f)
	}
	c.readLimits(o)
	if f, given := o.fields["max_tool_calls"]; given {
		readMaxToolCalls(c, f)
	}
	for _, key := range []string{"max_tokens", "confidence_threshold"} {
		if f, given := o.fields[key]; given {
			if _, ok := c.readNumber(f, 0, 1e12); ok {
				c.explainOpen(f, "not enforced: it counts what a model does outside of the sandbox")
			}
		}
	}
}

func (c *compiler) defaultAction(v value) {
	s, ok := c.readWord(v, "allow", "audit", "deny", "block")
	if !ok {
		return
	}
	c.policy.commands.given = true
	c.policy.commands.byDefault = actionEffect(s)
	if c.policy.commands.byDefault == Allow {
		c.explainEnforced(v, "a command, code or tool that no rule matches is allowed; packages and the network do not read this")
		return
	}
	c.explainEnforced(v, "a command, code or tool that no rule matches is denied; packages and the network do not read this")
}

// readLimits reads the native keys; agent-sandbox policies have null for "not set".
func (c *compiler) readLimits(o *object) {
	r := &c.policy.resources
	if f, given := o.fields["max_cpu"]; given && !isNull(f) && c.claimThing("cpu", f) {
		if n, ok := c.readNumber(f, 0.01, maxCores); ok {
			r.CPU = n
			c.explainEnforced(f, "at most %v CPU cores", n)
		}
	}
	if f, given := o.fields["max_memory_mb"]; given && !isNull(f) && c.claimThing("memory", f) {
		if n, ok := c.integer(f, 1, maxMB); ok {
			r.MemoryBytes = n << 20
			c.explainEnforced(f, "at most %d MiB of memory", n)
		}
	}
	if f, given := o.fields["max_disk_mb"]; given && !isNull(f) {
		if n, ok := c.integer(f, 1, maxMB); ok {
			r.DiskBytes = n << 20
			c.explainEnforced(f, "at most %d MiB of new files", n)
		}
	}
	if f, given := o.fields["max_pids"]; given && !isNull(f) {
		if n, ok := c.integer(f, 1, maxPids); ok {
			r.Pids = n
			c.explainEnforced(f, "at most %d processes and threads", n)
		}
	}
	if f, given := o.fields["timeout_seconds"]; given && !isNull(f) {
		c.timeout(f)
	}
}

func (c *compiler) timeout(v value) {
	if !c.claimThing("timeout", v) {
		return
	}
	if n, ok := c.readNumber(v, 0.001, maxSeconds); ok {
		c.policy.resources.Timeout = time.Duration(n * float64(time.Second))
		c.explainEnforced(v, "a command is killed after %v seconds", n)
	}
}

// resources reads a sandbox configuration's form: Kubernetes quantities.
func (c *compiler) resources(v value) {
	o := c.object(v, keysOf[resourcesKeys]()...)
	if o == nil {
		return
	}
	r := &c.policy.resources
	if f, given := o.fields["cpu_limit"]; given && c.claimThing("cpu", f) {
		if n, ok := c.quantity(f, 0.01, maxCores); ok {
			r.CPU = n
			c.explainEnforced(f, "at most %v CPU cores", n)
		}
	}
	if f, given := o.fields["memory_limit"]; given && c.claimThing("memory", f) {
		if n, ok := c.quantity(f, 1<<20, maxMB<<20); ok {
			r.MemoryBytes = int64(n)
			c.explainEnforced(f, "at most %d bytes of memory", int64(n))
		}
	}
	if f, given := o.fields["timeout_seconds"]; given {
		c.timeout(f)
	}
}

// quantity also takes a plain number, as Kubernetes does.
func (c *compiler) quantity(v value, least, most float64) (float64, bool) {
	if nodeKind(v.node) == "a number" {
		return c.readNumber(v, least, most)
	}
	s, ok := c.readText(v)
	if !ok {
		return 0, false
	}
	n, ok := parseQuantity(s)
	if !ok {
		c.failAt(v.node, "%s must be a quantity like \"2\", \"500m\" or \"4Gi\", and is %q", v.path, plainASCII(s, 40))
		return 0, false
	}
	if n < least || n > most {
		c.failAt(v.node, "%s must be from %v to %v, and is %v", v.path, least, most, math.Round(n*1000)/1000)
		return 0, false
	}
	return n, true
}
