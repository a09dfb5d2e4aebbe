// Made from the catalog's schemas by `npm run types`: edit src/models instead.
import type { ImageOutput, Media, SpeechOutput, TextOutput, VideoOutput } from "./outputs.ts";

export interface Models {
  /** Flux Dev: $0.02 per megapixel. */
  "black-forest-labs-flux-1-dev": {
    readonly input: {
      readonly prompt: string;
      readonly negative_prompt?: string;
      /** Pixels, best a multiple of 64. From 256 to 1536. 1024 unless you say otherwise. */
      readonly width?: number;
      /** Pixels, best a multiple of 64. From 256 to 1536. 1024 unless you say otherwise. */
      readonly height?: number;
      /** From 1 to 50. 28 unless you say otherwise. */
      readonly num_inference_steps?: number;
      /** From 0 to 10. 7.5 unless you say otherwise. */
      readonly guidance?: number;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** "jpeg" unless you say otherwise. */
      readonly image_format?: "png" | "jpeg";
    };
    readonly output: ImageOutput;
  };
  /** Flux Schnell: $0.0024 per megapixel. */
  "black-forest-labs-flux-1-schnell": {
    readonly input: {
      readonly prompt: string;
      readonly negative_prompt?: string;
      /** Pixels, best a multiple of 64. From 256 to 1536. 1024 unless you say otherwise. */
      readonly width?: number;
      /** Pixels, best a multiple of 64. From 256 to 1536. 1024 unless you say otherwise. */
      readonly height?: number;
      /** From 1 to 8. 4 unless you say otherwise. */
      readonly num_inference_steps?: number;
      /** From 0 to 10. 7.5 unless you say otherwise. */
      readonly guidance?: number;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** "jpeg" unless you say otherwise. */
      readonly image_format?: "png" | "jpeg";
    };
    readonly output: ImageOutput;
  };
  /** Flux Kontext Dev: $0.025 per image. */
  "black-forest-labs-flux-1-kontext-dev": {
    readonly input: {
      readonly prompt: string;
      readonly image: Media;
      readonly negative_prompt?: string;
      /** WIDTH*HEIGHT in pixels. "1024*1024" unless you say otherwise. */
      readonly size?: string;
      /** From 1 to 50. 28 unless you say otherwise. */
      readonly num_inference_steps?: number;
      /** From 0 to 10. 2 unless you say otherwise. */
      readonly guidance?: number;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** "png" unless you say otherwise. */
      readonly output_format?: "png" | "jpeg";
      /** true unless you say otherwise. */
      readonly enable_safety_checker?: boolean;
    };
    readonly output: ImageOutput;
  };
  /** Qwen Image: $0.02 per image. */
  "qwen-image-t2i": {
    readonly input: {
      readonly prompt: string;
      readonly negative_prompt?: string;
      /** WIDTH*HEIGHT in pixels. "1024*1024" unless you say otherwise. */
      readonly size?: string;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** true unless you say otherwise. */
      readonly enable_safety_checker?: boolean;
    };
    readonly output: ImageOutput;
  };
  /** Qwen Image LoRA: $0.025 per image. */
  "qwen-image-t2i-lora": {
    readonly input: {
      readonly prompt: string;
      readonly loras?: readonly {
        readonly path: string;
        readonly scale: number;
      }[];
      /** WIDTH*HEIGHT in pixels. "1024*1024" unless you say otherwise. */
      readonly size?: string;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** true unless you say otherwise. */
      readonly enable_safety_checker?: boolean;
    };
    readonly output: ImageOutput;
  };
  /** Qwen Image Edit: $0.02 per image. */
  "qwen-image-edit": {
    readonly input: {
      readonly prompt: string;
      readonly image: Media;
      readonly negative_prompt?: string;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** "jpeg" unless you say otherwise. */
      readonly output_format?: "png" | "jpeg";
      /** true unless you say otherwise. */
      readonly enable_safety_checker?: boolean;
    };
    readonly output: ImageOutput;
  };
  /** Qwen Image Edit 2511: $0.02 per image. */
  "qwen-image-edit-2511": {
    readonly input: {
      readonly prompt: string;
      readonly images: readonly Media[];
      /** WIDTH*HEIGHT in pixels; best one of 1024*1024, 1024*1280, 1280*1024, 1280*1280, 1280*1536, 1536*1080. "1024*1024" unless you say otherwise. */
      readonly size?: string;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** "jpeg" unless you say otherwise. */
      readonly output_format?: "jpeg" | "png" | "webp";
    };
    readonly output: ImageOutput;
  };
  /** Qwen Image Edit 2511 LoRA: $0.025 per image. */
  "qwen-image-edit-2511-lora": {
    readonly input: {
      readonly prompt: string;
      readonly images: readonly Media[];
      readonly loras?: readonly {
        readonly path: string;
        readonly scale: number;
      }[];
      /** WIDTH*HEIGHT in pixels; best one of 1024*1024, 1024*1280, 1280*1024, 1280*1280, 1280*1536, 1536*1080. "1024*1024" unless you say otherwise. */
      readonly size?: string;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** "jpeg" unless you say otherwise. */
      readonly output_format?: "jpeg" | "png" | "webp";
    };
    readonly output: ImageOutput;
  };
  /** Nano Banana Edit: $0.038 per image. */
  "nano-banana-edit": {
    readonly input: {
      readonly prompt: string;
      readonly images: readonly Media[];
      /** true unless you say otherwise. */
      readonly enable_safety_checker?: boolean;
    };
    readonly output: ImageOutput;
  };
  /** Nano Banana 2 Edit: $0.0875 (1K), $0.13 (2K), $0.175 (4K). */
  "google-nano-banana-2-edit": {
    readonly input: {
      readonly images: readonly Media[];
      readonly prompt: string;
      /** "1k" unless you say otherwise. */
      readonly resolution?: "1k" | "2k" | "4k";
      readonly aspect_ratio?: "1:1" | "3:2" | "16:9" | "9:16" | "4:5";
      /** "png" unless you say otherwise. */
      readonly output_format?: "png" | "jpeg";
      /** false unless you say otherwise. */
      readonly enable_base64_output?: boolean;
    };
    readonly output: ImageOutput;
  };
  /** Nano Banana Pro Edit: $0.14–$0.24 per image. */
  "nano-banana-pro-edit": {
    readonly input: {
      readonly prompt: string;
      readonly images: readonly Media[];
      /** "2k" unless you say otherwise. */
      readonly resolution?: "1k" | "2k" | "4k";
      /** "1:1" unless you say otherwise. */
      readonly aspect_ratio?: "1:1" | "3:2" | "2:3" | "4:3" | "4:5" | "5:4" | "9:16" | "16:9" | "21:9";
      /** "png" unless you say otherwise. */
      readonly output_format?: "png" | "jpeg";
      /** true unless you say otherwise. */
      readonly enable_safety_checker?: boolean;
    };
    readonly output: ImageOutput;
  };
  /** P-Image T2I: $0.005 per image. */
  "p-image-t2i": {
    readonly input: {
      readonly prompt: string;
      /** "16:9" unless you say otherwise. */
      readonly aspect_ratio?: "1:1" | "16:9" | "9:16" | "4:3" | "3:4" | "3:2" | "2:3";
      /** −1 takes a new one. The same seed and input give the same result. */
      readonly seed?: number;
      /** false unless you say otherwise. */
      readonly disable_safety_checker?: boolean;
    };
    readonly output: ImageOutput;
  };
  /** P-Image Edit: $0.01 per image. */
  "p-image-edit": {
    readonly input: {
      readonly prompt: string;
      readonly images: readonly Media[];
      /** "match_input_image" unless you say otherwise. */
      readonly aspect_ratio?: "match_input_image" | "1:1" | "16:9" | "9:16" | "4:3" | "3:4" | "3:2" | "2:3";
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** false unless you say otherwise. */
      readonly disable_safety_checker?: boolean;
    };
    readonly output: ImageOutput;
  };
  /** Pruna Video: $0.02/s (720p), $0.04/s (1080p). */
  "p-video": {
    readonly input: {
      readonly prompt: string;
      readonly image?: Media;
      readonly audio?: Media;
      /** Seconds. From 1 to 20. 5 unless you say otherwise. */
      readonly duration?: number;
      /** "720p" unless you say otherwise. */
      readonly resolution?: "720p" | "1080p";
      /** 24 unless you say otherwise. */
      readonly fps?: 24 | 48;
      /** "16:9" unless you say otherwise. */
      readonly aspect_ratio?: "16:9" | "9:16" | "4:3" | "3:4" | "3:2" | "2:3" | "1:1";
      /** −1 takes a new one. The same seed and input give the same result. */
      readonly seed?: number;
      /** false unless you say otherwise. */
      readonly draft?: boolean;
      /** true unless you say otherwise. */
      readonly save_audio?: boolean;
      /** true unless you say otherwise. */
      readonly prompt_upsampling?: boolean;
    };
    readonly output: VideoOutput;
  };
  /** Seedream 4.0 T2I: $0.027 per image. */
  "seedream-v4-t2i": {
    readonly input: {
      readonly prompt: string;
      readonly negative_prompt?: string;
      /** WIDTH*HEIGHT in pixels. "1024*1024" unless you say otherwise. */
      readonly size?: string;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** true unless you say otherwise. */
      readonly enable_safety_checker?: boolean;
    };
    readonly output: ImageOutput;
  };
  /** Seedream 4.0 Edit: $0.027 per image. */
  "seedream-v4-edit": {
    readonly input: {
      readonly prompt: string;
      readonly images: readonly Media[];
      /** WIDTH*HEIGHT in pixels. "1024*1024" unless you say otherwise. */
      readonly size?: string;
      /** true unless you say otherwise. */
      readonly enable_safety_checker?: boolean;
    };
    readonly output: ImageOutput;
  };
  /** Z-Image Turbo: $0.005 per image. */
  "z-image-turbo": {
    readonly input: {
      readonly prompt: string;
      readonly image?: Media;
      /** WIDTH*HEIGHT in pixels; best one of 512*512, 768*768, 1024*1024, 1280*1280, 1024*768, 768*1024, 1280*720, 720*1280. "1024*1024" unless you say otherwise. */
      readonly size?: string;
      /** From 0 to 1. 0.8 unless you say otherwise. */
      readonly strength?: number;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** "png" unless you say otherwise. */
      readonly output_format?: "png" | "jpeg" | "webp";
      /** true unless you say otherwise. */
      readonly enable_safety_checker?: boolean;
    };
    readonly output: ImageOutput;
  };
  /** WAN 2.1 I2V 720p: $0.30 per 5 seconds of video. */
  "wan-2-1-i2v-720": {
    readonly input: {
      readonly prompt: string;
      readonly image: Media;
      readonly negative_prompt?: string;
      /** WIDTH*HEIGHT in pixels. "1280*720" unless you say otherwise. */
      readonly size?: string;
      /** From 1 to 50. 30 unless you say otherwise. */
      readonly num_inference_steps?: number;
      /** From 0 to 10. 5 unless you say otherwise. */
      readonly guidance?: number;
      /** Seconds. From 1 to 10. 5 unless you say otherwise. */
      readonly duration?: number;
      /** 5 unless you say otherwise. */
      readonly flow_shift?: number;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** false unless you say otherwise. */
      readonly enable_prompt_optimization?: boolean;
      /** true unless you say otherwise. */
      readonly enable_safety_checker?: boolean;
    };
    readonly output: VideoOutput;
  };
  /** WAN 2.2 I2V 720p: $0.30–$0.90 per video. */
  "wan-2-2-i2v-720": {
    readonly input: {
      readonly prompt: string;
      readonly image: Media;
      readonly negative_prompt?: string;
      /** WIDTH*HEIGHT in pixels. "1280*720" unless you say otherwise. */
      readonly size?: string;
      /** From 1 to 50. 30 unless you say otherwise. */
      readonly num_inference_steps?: number;
      /** From 0 to 10. 5 unless you say otherwise. */
      readonly guidance?: number;
      /** Seconds. From 1 to 15. 5 unless you say otherwise. */
      readonly duration?: number;
      /** 5 unless you say otherwise. */
      readonly flow_shift?: number;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** false unless you say otherwise. */
      readonly enable_prompt_optimization?: boolean;
      /** true unless you say otherwise. */
      readonly enable_safety_checker?: boolean;
    };
    readonly output: VideoOutput;
  };
  /** WAN 2.2 I2V 720p LoRA: $0.35–$0.56 per video. */
  "wan-2-2-t2v-720-lora": {
    readonly input: {
      readonly prompt: string;
      readonly image: Media;
      readonly high_noise_loras?: readonly {
        readonly path: string;
        readonly scale: number;
      }[];
      readonly low_noise_loras?: readonly {
        readonly path: string;
        readonly scale: number;
      }[];
      /** Seconds. From 1 to 8. 5 unless you say otherwise. */
      readonly duration?: number;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** true unless you say otherwise. */
      readonly enable_safety_checker?: boolean;
    };
    readonly output: VideoOutput;
  };
  /** WAN 2.5: $0.25–$1.50 per video. */
  "wan-2-5": {
    readonly input: {
      readonly prompt: string;
      readonly image: Media;
      readonly negative_prompt?: string;
      /** WIDTH*HEIGHT in pixels. "1280*720" unless you say otherwise. */
      readonly size?: string;
      /** Seconds. From 1 to 10. 5 unless you say otherwise. */
      readonly duration?: number;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** false unless you say otherwise. */
      readonly enable_prompt_expansion?: boolean;
      /** true unless you say otherwise. */
      readonly enable_safety_checker?: boolean;
    };
    readonly output: VideoOutput;
  };
  /** WAN 2.6 I2V: $0.10/s (720p), $0.15/s (1080p). */
  "wan-2-6-i2v": {
    readonly input: {
      readonly prompt: string;
      readonly image: Media;
      readonly audio?: Media;
      readonly negative_prompt?: string;
      /** "1280*720" unless you say otherwise. */
      readonly size?: "1280*720" | "1920*1080";
      /** 5 unless you say otherwise. */
      readonly duration?: 5 | 10 | 15;
      /** "single" unless you say otherwise. */
      readonly shot_type?: "single" | "multi";
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** false unless you say otherwise. */
      readonly enable_prompt_expansion?: boolean;
      /** true unless you say otherwise. */
      readonly enable_safety_checker?: boolean;
    };
    readonly output: VideoOutput;
  };
  /** WAN 2.6 T2V: $0.50–$2.25 per video. */
  "wan-2-6-t2v": {
    readonly input: {
      readonly prompt: string;
      readonly negative_prompt?: string;
      /** 5 unless you say otherwise. */
      readonly duration?: 5 | 10 | 15;
      /** "1280*720" unless you say otherwise. */
      readonly size?: "1280*720" | "1920*1080" | "720*1280" | "1080*1920";
      /** "single" unless you say otherwise. */
      readonly shot_type?: "single" | "multi";
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** false unless you say otherwise. */
      readonly enable_prompt_expansion?: boolean;
      readonly audio?: Media;
    };
    readonly output: VideoOutput;
  };
  /** WAN 2.6 T2I: $0.03 per image. */
  "wan-2-6-t2i": {
    readonly input: {
      readonly prompt: string;
      /** WIDTH*HEIGHT in pixels; best one of 1024*1024, 1024*768, 1440*1024. "1024*1024" unless you say otherwise. */
      readonly size?: string;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** true unless you say otherwise. */
      readonly enable_safety_checker?: boolean;
    };
    readonly output: ImageOutput;
  };
  /** Kling v2.1 I2V Pro: $0.45 per 5 seconds. */
  "kling-v2-1-i2v-pro": {
    readonly input: {
      readonly prompt: string;
      readonly image: Media;
      readonly negative_prompt?: string;
      /** 0.5 unless you say otherwise. */
      readonly guidance_scale?: number;
      /** Seconds. From 1 to 10. 5 unless you say otherwise. */
      readonly duration?: number;
      /** true unless you say otherwise. */
      readonly enable_safety_checker?: boolean;
    };
    readonly output: VideoOutput;
  };
  /** Kling v2.6 Motion Control: $0.21–$0.63+ per video. */
  "kling-v2-6-std-motion-control": {
    readonly input: {
      readonly image: Media;
      readonly video: Media;
      readonly character_orientation: "video" | "image";
      readonly prompt?: string;
      readonly negative_prompt?: string;
      /** true unless you say otherwise. */
      readonly keep_original_sound?: boolean;
    };
    readonly output: VideoOutput;
  };
  /** Kling Video O1 R2V: $0.112 per second. */
  "kling-video-o1-r2v": {
    readonly input: {
      readonly prompt: string;
      readonly images: readonly Media[];
      readonly video?: Media;
      readonly negative_prompt?: string;
      /** "16:9" unless you say otherwise. */
      readonly aspect_ratio?: "16:9" | "9:16" | "1:1";
      /** Seconds. From 1 to 10. 5 unless you say otherwise. */
      readonly duration?: number;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
      /** false unless you say otherwise. */
      readonly enable_prompt_expansion?: boolean;
      /** true unless you say otherwise. */
      readonly enable_safety_checker?: boolean;
    };
    readonly output: VideoOutput;
  };
  /** Seedance 1.5 Pro I2V: $0.024–$0.052 per second. */
  "seedance-v1-5-pro-i2v": {
    readonly input: {
      readonly prompt: string;
      readonly image: Media;
      readonly last_image?: Media;
      /** From 4 to 12. 5 unless you say otherwise. */
      readonly duration?: number;
      /** "720p" unless you say otherwise. */
      readonly resolution?: "480p" | "720p";
      /** "16:9" unless you say otherwise. */
      readonly aspect_ratio?: "21:9" | "16:9" | "9:16" | "1:1" | "4:3" | "3:4";
      /** false unless you say otherwise. */
      readonly camera_fixed?: boolean;
      /** false unless you say otherwise. */
      readonly generate_audio?: boolean;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
    };
    readonly output: VideoOutput;
  };
  /** SORA 2 I2V: $0.40–$1.20 per video. */
  "sora-2-i2v": {
    readonly input: {
      readonly prompt: string;
      readonly image: Media;
      /** Seconds. From 1 to 12. */
      readonly duration: number;
    };
    readonly output: VideoOutput;
  };
  /** SORA 2 Pro I2V: $1.20–$6.00 per video. */
  "sora-2-pro-i2v": {
    readonly input: {
      readonly prompt: string;
      readonly image: Media;
      /** A resolution such as 720p, or WIDTH*HEIGHT. "720p" unless you say otherwise. */
      readonly size?: string;
      /** Seconds. From 1 to 12. */
      readonly duration: number;
    };
    readonly output: VideoOutput;
  };
  /** Vidu Q3 I2V: $0.15 per second. */
  "vidu-q3-i2v": {
    readonly input: {
      readonly image: Media;
      readonly prompt: string;
      /** "720p" unless you say otherwise. */
      readonly resolution?: "540p" | "720p" | "1080p";
      /** Seconds. From 1 to 16. 5 unless you say otherwise. */
      readonly duration?: number;
      /** "auto" unless you say otherwise. */
      readonly movement_amplitude?: "auto" | "small" | "medium" | "large";
      /** true unless you say otherwise. */
      readonly generate_audio?: boolean;
      /** true unless you say otherwise. */
      readonly bgm?: boolean;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
    };
    readonly output: VideoOutput;
  };
  /** Vidu Q3 T2V: $0.15 per second. */
  "vidu-q3-t2v": {
    readonly input: {
      readonly prompt: string;
      /** "general" unless you say otherwise. */
      readonly style?: "general" | "anime";
      /** "720p" unless you say otherwise. */
      readonly resolution?: "540p" | "720p" | "1080p";
      /** Seconds. From 1 to 16. 5 unless you say otherwise. */
      readonly duration?: number;
      /** "4:3" unless you say otherwise. */
      readonly aspect_ratio?: "16:9" | "9:16" | "4:3" | "3:4" | "1:1";
      /** "auto" unless you say otherwise. */
      readonly movement_amplitude?: "auto" | "small" | "medium" | "large";
      /** true unless you say otherwise. */
      readonly generate_audio?: boolean;
      /** true unless you say otherwise. */
      readonly bgm?: boolean;
      /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
      readonly seed?: number;
    };
    readonly output: VideoOutput;
  };
  /** InfiniteTalk: $0.25–$0.50 per video. */
  "infinitetalk": {
    readonly input: {
      readonly prompt: string;
      readonly image: Media;
      readonly audio: Media;
      readonly size: "480p" | "720p";
      /** true unless you say otherwise. */
      readonly enable_safety_checker?: boolean;
    };
    readonly output: VideoOutput;
  };
  /** Chatterbox Turbo: $0.001 per second. */
  "chatterbox-turbo": {
    readonly input: {
      readonly prompt: string;
      /** "lucy" unless you say otherwise. */
      readonly voice?: "aaron" | "abigail" | "anaya" | "andy" | "archer" | "brian" | "chloe" | "dylan" | "emmanuel" | "ethan" | "evelyn" | "gavin" | "gordon" | "ivan" | "laura" | "lucy" | "madison" | "marisol" | "meera" | "walter";
      readonly voice_url?: Media;
      /** "wav" unless you say otherwise. */
      readonly format?: "wav" | "flac" | "ogg";
    };
    readonly output: SpeechOutput;
  };
  /** Minimax Speech 02 HD: $0.05 per 1000 characters. */
  "minimax-speech-02-hd": {
    readonly input: {
      readonly prompt: string;
      /** "Wise_Woman" unless you say otherwise. */
      readonly voice_id?: string;
      /** 1 unless you say otherwise. */
      readonly speed?: number;
      /** 1 unless you say otherwise. */
      readonly volume?: number;
      /** 0 unless you say otherwise. */
      readonly pitch?: number;
      /** "neutral" unless you say otherwise. */
      readonly emotion?: "happy" | "sad" | "neutral" | "angry" | "fearful" | "surprised";
      /** false unless you say otherwise. */
      readonly english_normalization?: boolean;
      readonly default_audio_url?: Media;
    };
    readonly output: SpeechOutput;
  };
  /** Cogito 671B v2.1: $0.50 per 1M tokens. */
  "cogito-671b-v2-1-fp8-dynamic": {
    readonly input: {
      readonly prompt: string;
      /** From 1 to 131072. 512 unless you say otherwise. */
      readonly max_tokens?: number;
      /** From 0 to 1. 0.7 unless you say otherwise. */
      readonly temperature?: number;
      /** From 0 to 1. */
      readonly top_p?: number;
      /** From -1 to 1000000. */
      readonly top_k?: number;
      readonly stop?: string;
    };
    readonly output: TextOutput;
  };
  /** GPT-OSS 120B: $10.00 per 1M tokens. */
  "gpt-oss-120b": {
    readonly input: {
      readonly prompt: string;
      /** From 1 to 131072. 512 unless you say otherwise. */
      readonly max_tokens?: number;
      /** From 0 to 1. 0.7 unless you say otherwise. */
      readonly temperature?: number;
      /** From 0 to 1. */
      readonly top_p?: number;
      /** From -1 to 1000000. */
      readonly top_k?: number;
      readonly stop?: string;
    };
    readonly output: TextOutput;
  };
  /** IBM Granite 4.0: $10.00 per 1M tokens. */
  "granite-4-0-h-small": {
    readonly input: {
      readonly messages: readonly ({
        readonly role: "system" | "user" | "assistant";
        readonly content: string;
      })[];
      /** {} unless you say otherwise. */
      readonly sampling_params?: {
        /** From 1 to 131072. 512 unless you say otherwise. */
        readonly max_tokens?: number;
        /** From 0 to 1. 0.7 unless you say otherwise. */
        readonly temperature?: number;
        /** −1 takes a new one. The same seed and input give the same result. -1 unless you say otherwise. */
        readonly seed?: number;
        /** From -1 to 1000000. -1 unless you say otherwise. */
        readonly top_k?: number;
        /** From 0 to 1. 1 unless you say otherwise. */
        readonly top_p?: number;
      };
    };
    readonly output: TextOutput;
  };
  /** Moonshot Kimi: $4.00–$15.00 per 1M output tokens, $0.95–$3.00 per 1M input tokens. */
  "moonshot-kimi": {
    readonly input: {
      readonly messages: readonly ({
        readonly role: "system" | "user" | "assistant";
        readonly content: string;
      })[];
      /** "kimi-k2.6" unless you say otherwise. */
      readonly model?: "kimi-k2.6" | "kimi-k2.7-code" | "kimi-k3";
      /** {} unless you say otherwise. */
      readonly sampling_params?: {
        /** From 1 to 131072. 2048 unless you say otherwise. */
        readonly max_tokens?: number;
        /** From 0 to 2. 1 unless you say otherwise. */
        readonly temperature?: number;
        /** −1 takes a new one. The same seed and input give the same result. */
        readonly seed?: number;
        /** From -1 to 1000000. */
        readonly top_k?: number;
        /** From 0 to 1. */
        readonly top_p?: number;
      };
    };
    readonly output: TextOutput;
  };
  /** Qwen3 32B AWQ: $10.00 per 1M tokens. */
  "qwen3-32b-awq": {
    readonly input: {
      readonly prompt: string;
      /** From 1 to 131072. 512 unless you say otherwise. */
      readonly max_tokens?: number;
      /** From 0 to 1. 0.7 unless you say otherwise. */
      readonly temperature?: number;
      /** From 0 to 1. */
      readonly top_p?: number;
      /** From -1 to 1000000. */
      readonly top_k?: number;
      readonly stop?: string;
    };
    readonly output: TextOutput;
  };
}
