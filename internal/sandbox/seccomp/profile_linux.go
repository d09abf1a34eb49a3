package seccomp

import (
	"encoding/json"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// profile is the form in which podman and docker take a filter.
type profile struct {
	Default       string   `json:"defaultAction"`
	Architectures []string `json:"architectures"`
	Calls         []rule   `json:"syscalls"`
}

type rule struct {
	Names  []string   `json:"names"`
	Action string     `json:"action"`
	Errno  unix.Errno `json:"errnoRet"`
	Args   []argument `json:"args,omitempty"`
}

// argument is a comparison with an argument of a call.
type argument struct {
	Index int    `json:"index"`
	Value uint32 `json:"value"`
	Op    string `json:"op"`
}

// Profile returns the filter for the containers of podman and docker, in place of theirs: the same
// calls and sockets as Filter, but for calls that reach only the container's own processes. Where
// we do not know our own instruction set it is nil, and the engine's own filter stays.
func Profile() []byte {
	own, known := map[string]string{"amd64": "SCMP_ARCH_X86_64", "arm64": "SCMP_ARCH_AARCH64"}[runtime.GOARCH]
	if !known {
		return nil
	}
	const refuse = "SCMP_ACT_ERRNO"
	p := profile{Default: "SCMP_ACT_ALLOW", Architectures: []string{own}}
	for _, call := range refusedCalls {
		if !slices.Contains(ownCalls, call.number) {
			p.Calls = append(p.Calls, rule{Names: []string{call.name}, Action: refuse, Errno: call.err})
		}
	}
	for _, family := range sharedSockets {
		p.Calls = append(p.Calls, rule{
			Names:  []string{"socket", "socketpair"},
			Action: refuse,
			Errno:  unix.EAFNOSUPPORT,
			Args:   []argument{{Value: family, Op: "SCMP_CMP_EQ"}},
		})
	}
	text, _ := json.Marshal(p) // it has only texts and numbers
	return text
}
