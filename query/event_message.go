package query

func (s *lineScanner) message(f *fields) bool {
	f.hasMessage, f.hasMsgID, f.hasUsage, f.parts = false, false, false, f.parts[:0]
	if !s.at('{') {
		value, ok := s.value()
		f.hasMessage = ok && truthy(value.of(s.b))
		return ok
	}
	f.hasMessage = true
	return s.object(func(key span, _ bool) bool {
		switch string(key.of(s.b)) {
		case "id":
			f.hasMsgID = s.at('"')
			return s.textField(&f.msgID)
		case "usage":
			return s.usage(f)
		case "content":
			return s.content(f)
		}
		return s.skip()
	})
}

func (s *lineScanner) usage(f *fields) bool {
	f.hasUsage = s.at('{')
	if !f.hasUsage {
		return s.skip()
	}
	f.usage = Tokens{}
	return s.tokens(&f.usage)
}

// tokens reads the four counters in the spelling of the model's service.
func (s *scanner) tokens(to *Tokens) bool {
	return s.object(func(key span, _ bool) bool {
		var field *int64
		switch string(key.of(s.b)) {
		case "input_tokens":
			field = &to.Input
		case "output_tokens":
			field = &to.Output
		case "cache_read_input_tokens":
			field = &to.CacheRead
		case "cache_creation_input_tokens":
			field = &to.CacheCreation
		default:
			return s.skip()
		}
		value, ok := s.value()
		*field = parseInt(value.of(s.b))
		return ok
	})
}

// content reads the content of a message. A plain string is the same as one text block.
func (s *lineScanner) content(f *fields) bool {
	f.parts = f.parts[:0]
	switch {
	case s.at('"'):
		start := s.i
		text, _, ok := s.str()
		f.parts = append(f.parts, part{
			typ:     blockText,
			hasText: true,
			text:    text,
			raw:     s.from(start),
		})
		return ok
	case s.at('['):
		return s.array(func() bool {
			f.parts = append(f.parts, part{})
			return s.part(&f.parts[len(f.parts)-1])
		})
	}
	return s.skip()
}

// blockMembers are the members of a block whose meaning depends on its type.
type blockMembers struct {
	typ, text, thinking, id, toolUseID span
	hasText, hasThinking               bool
}

func (s *lineScanner) part(p *part) bool {
	start := s.i
	if !s.at('{') {
		p.typ = blockBroken
		return s.skip()
	}
	var m blockMembers
	ok := s.object(func(key span, _ bool) bool {
		switch string(key.of(s.b)) {
		case "type":
			return s.textField(&m.typ)
		case "text":
			m.hasText = s.at('"')
			return s.textField(&m.text)
		case "thinking":
			m.hasThinking = s.at('"')
			return s.textField(&m.thinking)
		case "id":
			return s.textField(&m.id)
		case "tool_use_id":
			return s.textField(&m.toolUseID)
		case "name":
			return s.textField(&p.name)
		case "is_error":
			value, ok := s.value()
			p.isError = string(value.of(s.b)) == "true"
			return ok
		case "input":
			var ok bool
			p.input, ok = s.value()
			return ok
		case "content":
			p.contentKind = 0
			if s.more() {
				p.contentKind = s.b[s.i]
			}
			var ok bool
			p.content, ok = s.value()
			return ok
		}
		return s.skip()
	})
	p.raw = s.from(start)
	p.become(m, s.b)
	return ok
}

// become gives a block the members that count for its type, which may stand behind them.
func (p *part) become(m blockMembers, line []byte) {
	switch string(m.typ.of(line)) {
	case "text":
		p.typ, p.text, p.hasText = blockText, m.text, m.hasText
	case "thinking":
		p.typ, p.text, p.hasText = blockThinking, m.thinking, m.hasThinking
	case "tool_use":
		p.typ, p.id = blockToolUse, m.id
	case "tool_result":
		p.typ, p.id = blockToolResult, m.toolUseID
	}
}
