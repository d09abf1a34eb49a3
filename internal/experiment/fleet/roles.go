package fleet

import (
	"fmt"
	"slices"
	"strings"
)

// hubAccount has the stores of the fleet, and the coordinators.
const hubAccount = "FIT"

// rights are the subjects of the hub's account that a member may send to and hear.
type rights struct{ send, hear []string }

// rightsOf returns the rights of a role, for the member with a public key; those of the key * are
// the rights of all.
//
// Workers and observers may not make consumers: a consumer delivers to any subject.
func rightsOf(role, key string) rights {
	reads := func(streams ...string) []string {
		list := []string{"$JS.API.INFO"} // without it a server answers all of $JS.API in the name of the key's account
		for _, name := range streams {
			get := "$JS.API.DIRECT.GET." + name
			list = append(list, "$JS.API.STREAM.INFO."+name, get, get+".>")
		}
		return list
	}
	switch role {
	case RoleCoordinator:
		return rights{
			send: []string{
				"$JS.API.>", "$JS.ACK.>", "$JS.FC.>", "$KV." + fleetBucket + ".>",
				"$KV." + workersBucket + "." + livesPrefix + "*", "$O." + treesBucket + ".>", "fit.work.>",
				cancelSubject("*"), doneSubject("*", markToken, markToken),
			},
			hear: []string{inboxPrefix(key) + ".>", eventSubject("*", "*")},
		}
	case RoleWorker:
		return rights{
			send: append(reads("KV_"+fleetBucket, "KV_"+workersBucket, "OBJ_"+treesBucket),
				"$JS.API.CONSUMER.INFO.*."+consumerName, takeSubject,
				"$JS.ACK.*."+consumerName+".>", "$KV."+workersBucket+"."+key+".*",
				doneSubject("*", key, "*"), fileSubject("*", key, "*"), eventSubject("*", key)),
			hear: []string{subjectPrefix + ">", cancelSubject("*")},
		}
	default:
		return rights{
			send: append(reads("KV_"+fleetBucket, "KV_"+workersBucket), "$JS.API.CONSUMER.INFO.*."+consumerName),
		}
	}
}

// takeSubject is where workers ask for attempts. It is the one request with several answers.
const takeSubject = "$JS.API.CONSUMER.MSG.NEXT.*." + consumerName

func answers(subject string) string {
	if subject == takeSubject {
		return "stream"
	}
	return "singleton"
}

// inboxPrefix begins the subjects of the answers to a member, which no other one can read.
func inboxPrefix(key string) string { return "_INBOX." + key }

// exported returns the rights of all workers and observers.
func exported() rights {
	all := rightsOf(RoleWorker, "*")
	all.send = append(all.send, rightsOf(RoleObserver, "*").send...)
	slices.Sort(all.send)
	all.send = slices.Compact(all.send)
	return all
}

// conf returns the members and their rights as a part of the configuration of a NATS server.
//
// Every key of a worker or observer has an account of its own, which imports what it has a right
// to. Who asks a server names the subject of the answer: it is a subject of that account, so that
// no answer can be written into a store, or be heard by another member.
func (k *hubKeys) conf() (string, error) {
	var coordinators, exports, accounts strings.Builder
	all := exported()
	for _, subject := range all.send {
		fmt.Fprintf(&exports, "      {service: %q, response_type: %s}\n", subject, answers(subject))
	}
	for _, subject := range all.hear {
		fmt.Fprintf(&exports, "      {stream: %q}\n", subject)
	}
	for _, m := range k.Members {
		key, err := m.Key()
		if err != nil {
			return "", fmt.Errorf("key %s: %w", m.Name, err)
		}
		own := rightsOf(m.Role, key)
		if m.Role == RoleCoordinator {
			fmt.Fprintf(&coordinators, "      { # %s\n        nkey: %s\n        permissions {\n          "+
				"publish: {allow: %s}\n          subscribe: {allow: %s}\n        }\n      }\n", m.Name, key,
				quoted(own.send), quoted(own.hear))
			continue
		}
		fmt.Fprintf(&accounts, "  %s { # %s: %s\n    users = [{nkey: %[1]s}]\n    imports = [\n", key, m.Name, m.Role)
		for _, subject := range own.send {
			fmt.Fprintf(&accounts, "      {service: {account: %s, subject: %q}}\n", hubAccount, subject)
		}
		for _, subject := range own.hear {
			fmt.Fprintf(&accounts, "      {stream: {account: %s, subject: %q}}\n", hubAccount, subject)
		}
		accounts.WriteString("    ]\n  }\n")
	}
	return fmt.Sprintf("accounts {\n  %s {\n    jetstream: enabled\n    users = [\n%s    ]\n    exports = [\n%s    ]\n"+
		"  }\n%s}\n", hubAccount, &coordinators, &exports, &accounts), nil
}

func quoted(subjects []string) string { return `["` + strings.Join(subjects, `", "`) + `"]` }

// nsc returns the same as commands of that tool.
func (k *hubKeys) nsc() (string, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "nsc add account %[1]s\nnsc edit account %[1]s --js-disk-storage -1 --js-mem-storage -1\n",
		hubAccount)
	all := exported()
	for _, subject := range all.send {
		fmt.Fprintf(&text, "nsc add export --account %s --service --subject '%s' --response-type %s\n", hubAccount,
			subject, answers(subject))
	}
	for _, subject := range all.hear {
		fmt.Fprintf(&text, "nsc add export --account %s --subject '%s'\n", hubAccount, subject)
	}
	for _, m := range k.Members {
		key, err := m.Key()
		if err != nil {
			return "", fmt.Errorf("key %s: %w", m.Name, err)
		}
		own := rightsOf(m.Role, key)
		if m.Role == RoleCoordinator {
			fmt.Fprintf(&text, "nsc add user --account %s --name '%s' --public-key %s --allow-pub '%s' "+
				"--allow-sub '%s'\n", hubAccount, m.Name, key, strings.Join(own.send, ","), strings.Join(own.hear, ","))
			continue
		}
		fmt.Fprintf(&text, "nsc add account %[1]s\nnsc add user --account %[1]s --name '%s' --public-key %[1]s\n", key,
			m.Name)
		for _, subject := range own.send {
			fmt.Fprintf(&text, "nsc add import --account %s --src-account %s --service --remote-subject '%s'\n", key,
				hubAccount, subject)
		}
		for _, subject := range own.hear {
			fmt.Fprintf(&text, "nsc add import --account %s --src-account %s --remote-subject '%s'\n", key, hubAccount,
				subject)
		}
	}
	return text.String(), nil
}

// Permissions returns the members of a hub directory as the configuration of an external server
// (conf), or as commands of its tool (nsc), and writes their URLs.
func Permissions(dir, address, form string) (string, error) {
	keys, err := hubSecrets(dir)
	if err != nil {
		return "", err
	}
	host, _, err := splitAddress(address)
	if err != nil {
		return "", fmt.Errorf("address %q: %w", address, err)
	}
	if err := keys.writeURLs(dir, joinURL{Address: address, External: true, TLS: !isLoopback(host)}); err != nil {
		return "", err
	}
	if form == "nsc" {
		return keys.nsc()
	}
	return keys.conf()
}
