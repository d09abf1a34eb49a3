// Package gateway is the proxy between agents and their models. It runs in the process that starts
// the agents and listens on the loopback interface and on a Unix socket. Agents reach it through
// their base URL, and it passes their calls on: Anthropic Messages, OpenAI Responses and Chat
// Completions, with the lists of models and the counting of tokens beside them.
//
//	g, err := gateway.Start(gateway.Config{})
//	seat, err := g.Join(gateway.Member{
//		Name:      "agent",
//		Upstreams: []gateway.Upstream{{Protocol: gateway.Anthropic, URL: "https://api.anthropic.com/v1", Header: key}},
//	})
//	// the agent gets seat.URL as its base URL and seat.Token as its key
//	err = seat.Leave() // from now on the token opens nothing
//	err = g.Close()
//
// A member sees a token and never the key. Its calls go only to its own upstreams. A reply is
// passed on as it arrives, byte for byte; what it says about tokens is read on the side.
//
// A call goes through these steps: token, replay, faults, budget, rate control, upstream, and when
// it is over, the record of it.
package gateway
