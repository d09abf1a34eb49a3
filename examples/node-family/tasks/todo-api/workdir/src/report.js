console.error("not written yet");
process.exit(1);
