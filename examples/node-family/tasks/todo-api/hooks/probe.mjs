try {
  const answer = await fetch(`http://127.0.0.1:${process.env.PORT}/health`);
  process.exit(answer.ok ? 0 : 1);
} catch {
  process.exit(1);
}
